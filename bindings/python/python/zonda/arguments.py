"""What functions are called with: query and reply, and labels that their pattern captures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, Union

from .errors import ConfigTypeError

# Labels that a pattern captures.
_CAPTURE = re.compile(r"(?:^|\.):([^./]+)")
# A label, in which a backslash goes before a dot.
_LABEL = re.compile(r"(?:\\.|[^\\.])+")


def labels_of(name: str) -> int:
    """The number of a name's labels."""
    return len(_LABEL.findall(name))


def name_of(function: Any) -> str:
    """What a function is called in errors."""
    return getattr(function, "__qualname__", None) or repr(function)


def with_captures(
    function: Callable[..., Any], what: str, own: Sequence[str], pattern: str
) -> Callable[..., Any]:
    """A function that is called with ``own`` alone, and calls one that may have further parameters,
    in any order: those named as labels that the pattern captures are given these, those named as in
    ``own`` are given that, and the others what is left of ``own``, in its order. Raises
    ``ConfigTypeError`` for a function that cannot be called so; ``what`` says what it is for."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # some functions that are not written in Python
        return function
    captured = [*dict.fromkeys(_CAPTURE.findall(pattern.partition("/")[0]))]
    given = _given(parameters, own, captured)
    if given is None:
        words = "".join(f", {word}" for word in captured if word.isidentifier())
        takes = ", ".join(map(str, parameters))
        raise ConfigTypeError(
            f"{what} {name_of(function)} takes ({takes}), but is called with ({', '.join(own)}{words})"
            + (": labels that the pattern captures may be left out" if words else "")
        )
    places, named = given
    if places == [*range(len(own))] and not named:
        return function

    def call(*arguments: Any) -> Any:
        capture = arguments[0].capture
        positional = [capture(it) if isinstance(it, str) else arguments[it] for it in places]
        keywords = {
            name: capture(it) if isinstance(it, str) else arguments[it]
            for name, it in named.items()
        }
        return function(*positional, **keywords)

    call.__qualname__ = name_of(function)
    return call


# What a parameter is given: the label that is captured under a name, or one of a function's own
# arguments by its place.
_Source: TypeAlias = Union[str, int]


def _given(
    parameters: Sequence[inspect.Parameter], own: Sequence[str], captured: Sequence[str]
) -> tuple[list[_Source], dict[str, _Source]] | None:
    """What parameters are given by their places, and what by their names; ``None`` if one that has
    no value is given nothing, or an argument of ``own`` is given to none."""
    places: list[_Source] = []
    named: dict[str, _Source] = {}
    names = {parameter.name for parameter in parameters if parameter.kind not in _COLLECTING}
    left = [place for place, name in enumerate(own) if name not in names]
    is_by_name = False
    for parameter in parameters:
        name, kind = parameter.name, parameter.kind
        if kind is parameter.VAR_POSITIONAL and not is_by_name:
            places += left
            left = []
        if kind in _COLLECTING:
            continue
        is_by_name = is_by_name or kind is parameter.KEYWORD_ONLY
        source: _Source
        if name in own:
            source = own.index(name)
        elif name in captured:
            source = name
        elif left and kind is not parameter.KEYWORD_ONLY:
            source = left.pop(0)
        elif parameter.default is parameter.empty:
            return None
        else:
            is_by_name = True  # what is behind it, as it keeps its value
            continue
        if not is_by_name:
            places.append(source)
        elif kind is not parameter.POSITIONAL_ONLY:
            named[name] = source
        elif parameter.default is parameter.empty:
            return None
    return None if left else (places, named)


# Kinds of parameters that take what no other one does.
_COLLECTING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
