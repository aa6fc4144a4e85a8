"""What functions are called with: query and reply, and labels that their pattern captures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

# Labels that a pattern captures.
_CAPTURE = re.compile(r"(?:^|\.):([^./]+)")


def name_of(function: Any) -> str:
    """What a function is called in errors."""
    return getattr(function, "__qualname__", None) or repr(function)


def with_captures(
    function: Callable[..., Any], what: str, own: Sequence[str], pattern: str
) -> Callable[..., Any]:
    """A function that is called with ``own`` alone, and calls one that may have further parameters:
    those are given the labels that the pattern captures under their names. Raises ``TypeError`` for
    a function that cannot be called so; ``what`` says what it is for."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # some functions that are not written in Python
        return function
    captured = [*dict.fromkeys(_CAPTURE.findall(pattern.partition("/")[0]))]
    names = _further(parameters, len(own), captured)
    if names is None:
        words = "".join(f", {word}" for word in captured if word.isidentifier())
        takes = ", ".join(map(str, parameters))
        raise TypeError(
            f"{what} {name_of(function)} takes ({takes}), but is called with ({', '.join(own)}{words})"
            + (": labels that the pattern captures may be left out" if words else "")
        )
    if not names:
        return function

    def call(*arguments: Any) -> Any:
        query = arguments[0]
        return function(*arguments, **{name: query.capture(name) for name in names})

    call.__qualname__ = name_of(function)
    return call


def _further(
    parameters: Sequence[inspect.Parameter], count: int, captured: Sequence[str]
) -> list[str] | None:
    """The names of the parameters behind the first ``count`` that are given captures; ``None`` if
    there are not so many, or one more that has no value."""
    names = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            count = 0
        elif parameter.kind is parameter.VAR_KEYWORD:
            continue
        elif count > 0 and parameter.kind is not parameter.KEYWORD_ONLY:
            count -= 1
        elif parameter.name in captured and parameter.kind is not parameter.POSITIONAL_ONLY:
            names.append(parameter.name)
        elif parameter.default is parameter.empty:
            return None
    return None if count > 0 else names
