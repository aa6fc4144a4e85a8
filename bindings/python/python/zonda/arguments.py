"""What functions are called with: query and reply, and labels that their pattern captures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
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
    """A function that is called with ``own`` alone, and calls one that may have further parameters:
    those are given the labels that the pattern captures under their names. A function that takes a
    label in front, or what ``own`` names in another order, is given all by the names of its
    parameters, and those with other names what is left of ``own``, in its order. Raises
    ``ConfigTypeError`` for a function that cannot be called so; ``what`` says what it is for."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # some functions that are not written in Python
        return function
    captured = [*dict.fromkeys(_CAPTURE.findall(pattern.partition("/")[0]))]
    given = _given(parameters, own, captured)
    if given is None:
        words = "".join(f", {word}" for word in captured if word.isidentifier())
        takes, gives = ", ".join(map(str, parameters)), ", ".join(own) + words
        raise ConfigTypeError(
            f"{what} {name_of(function)} takes ({takes}), but is called with ({gives})"
            + (": labels that the pattern captures may be left out" if words else "")
        )
    places, named = given
    if places == [*range(len(own))] and not named:
        return function

    query_place = own.index("query")

    def call(*arguments: Any) -> Any:
        capture = arguments[query_place].capture
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
# Kinds of parameters that take what no other one does.
_COLLECTING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _given(
    parameters: Sequence[inspect.Parameter], own: Sequence[str], captured: Sequence[str]
) -> tuple[list[_Source], dict[str, _Source]] | None:
    """What parameters are given by their places, and what by their names; ``None`` if one that has
    no value is given nothing, or an argument of ``own`` is given to none."""
    singles = [it for it in parameters if it.kind not in _COLLECTING]
    first = [it.name for it in singles if it.kind is not it.KEYWORD_ONLY][: len(own)]
    in_order = [it.name for it in singles if it.name in own]
    is_by_name = any(name in captured and name not in own for name in first)
    if is_by_name or (len(in_order) == len(own) and in_order != [*own]):
        return _divided(parameters, _by_name(singles, own, captured), own)
    return _divided(parameters, _by_place(singles, own, captured), own) or _divided(
        parameters, _by_name(singles, own, captured), own
    )


def _by_place(
    singles: Sequence[inspect.Parameter], own: Sequence[str], captured: Sequence[str]
) -> dict[str, _Source | None]:
    """What each parameter is given, if anything: the first ones ``own``, and others labels."""
    left = [*range(len(own))]
    return {
        it.name: left.pop(0)
        if left and it.kind is not it.KEYWORD_ONLY
        else (it.name if it.name in captured else None)
        for it in singles
    }


def _by_name(
    singles: Sequence[inspect.Parameter], own: Sequence[str], captured: Sequence[str]
) -> dict[str, _Source | None]:
    """What each parameter is given, if anything: what it is named as, and the others what is left
    of ``own``."""
    names = {it.name for it in singles}
    left = [place for place, name in enumerate(own) if name not in names]
    sources: dict[str, _Source | None] = {}
    for it in singles:
        if it.name in own:
            sources[it.name] = own.index(it.name)
        elif it.name in captured:
            sources[it.name] = it.name
        else:
            sources[it.name] = left.pop(0) if left and it.kind is not it.KEYWORD_ONLY else None
    return sources


def _divided(
    parameters: Sequence[inspect.Parameter],
    sources: Mapping[str, _Source | None],
    own: Sequence[str],
) -> tuple[list[_Source], dict[str, _Source]] | None:
    """What is given by place, and what by name: all from the first label on, as the function may be
    a decorator's, which takes labels as ``**labels`` whatever it says of itself."""
    places: list[_Source] = []
    named: dict[str, _Source] = {}
    left = [place for place in range(len(own)) if place not in sources.values()]
    if left and not any(it.kind is it.VAR_POSITIONAL for it in parameters):
        return None
    is_by_name = False
    for it in parameters:
        if it.kind is it.VAR_POSITIONAL and left:
            if is_by_name:
                return None
            places += left
        if it.kind in _COLLECTING:
            continue
        source = sources[it.name]
        is_positional = it.kind is it.POSITIONAL_ONLY
        if source is None:
            if it.default is it.empty:
                return None
            is_by_name = True  # what is behind it, as it keeps its value
        elif is_by_name and is_positional:
            return None
        else:
            is_label = isinstance(source, str) and not is_positional and not left
            is_by_name = is_by_name or is_label or it.kind is it.KEYWORD_ONLY
            if is_by_name:
                named[it.name] = source
            else:
                places.append(source)
    return places, named
