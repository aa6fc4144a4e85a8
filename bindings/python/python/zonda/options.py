"""Arguments: what values those of an app must be, addresses in all their forms, and words."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from ._core import check_zone_name
from .errors import ConfigError, ZoneError

# Addresses to listen on, or of servers: texts, or pairs of address and port as `App.addresses` has
# them; one of these, or several.
Address: TypeAlias = Union[str, tuple[str, int]]
Addresses: TypeAlias = Union[Address, Iterable[Address]]

if TYPE_CHECKING:
    from ._core import _ResponseCode
    from .records import _RecordType

    RecordType: TypeAlias = _RecordType
    ResponseCode: TypeAlias = _ResponseCode
else:  # type checkers know all words of both
    RecordType: TypeAlias = str
    ResponseCode: TypeAlias = str

_PORT_MAX = 65_535
_WORKERS_MAX = 65_535
_COUNT_MAX = 2**32 - 1
# Longer than any program runs, and short enough for a number of nanoseconds.
_SECONDS_MAX = 1e9


def addresses(name: str, given: Any, example: str) -> list[str]:
    """Addresses as texts, of one or of several; ``name`` is that of the argument."""
    if isinstance(given, str) or _is_pair(given):
        return [_address(name, given, example)]
    if not isinstance(given, Iterable) or isinstance(given, (bytes, bytearray, dict)):
        raise _wrong(name, f"an address such as {example}, or a list of them", given)
    return [_address(name, one, example) for one in given]


def _address(name: str, given: Any, example: str) -> str:
    """An address as a text: ``"[::1]:53"`` of ``("::1", 53)``."""
    if isinstance(given, str):
        return given
    if not _is_pair(given):
        raise _wrong(name, f"an address such as {example}, or a pair of address and port", given)
    host, port = given
    if not 0 <= port <= _PORT_MAX:
        raise _wrong(f"the port of {name}", f"from 0 to {_PORT_MAX}", given)
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def _is_pair(given: Any) -> bool:
    """Whether something is an address and a port."""
    return (
        isinstance(given, tuple)
        and len(given) == 2
        and isinstance(given[0], str)
        and _is_whole(given[1])
    )


def _is_whole(given: Any) -> bool:
    """Whether something is a whole number."""
    return isinstance(given, int) and not isinstance(given, bool)


def path(name: str, given: Any) -> str | None:
    """The path of a file, if there is one."""
    if given is None:
        return None
    if not isinstance(given, (str, os.PathLike)):
        raise _wrong(name, "the path of a file", given)
    return os.fsdecode(os.fspath(given))


def count(name: str, given: Any, most: int = _COUNT_MAX) -> int:
    """A whole number from 1 on."""
    if not _is_whole(given) or not 1 <= given <= most:
        raise _wrong(name, f"a whole number from 1 to {most}", given)
    return int(given)


def workers(given: Any) -> int | None:
    """How many threads there are, if that is said."""
    return None if given is None else count("workers", given, _WORKERS_MAX)


def seconds(name: str, given: Any) -> float:
    """A time, seconds."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise _wrong(name, "a number of seconds", given)
    if not math.isfinite(given) or not 0 <= given <= _SECONDS_MAX:
        raise _wrong(name, f"a number of seconds from 0 to {_SECONDS_MAX:g}", given)
    return float(given)


def yes_or_no(name: str, given: Any) -> bool:
    """Whether something is so."""
    if not isinstance(given, bool):
        raise _wrong(name, "True or False", given)
    return given


def metrics(given: Any) -> str | None:
    """The address of metrics, if there is one."""
    return None if given is None else _address("metrics", given, '"127.0.0.1:9153"')


def zone_name(given: Any) -> None:
    """Raises ``ZoneError`` for what is not the name of a zone."""
    if not isinstance(given, str):
        wanted = 'a text such as "example.org"'
        raise ZoneError(f"the name of a zone must be {wanted}, not {given!r}")
    check_zone_name(given)


def zone_text(given: Any) -> str:
    """The text of a zone."""
    if not isinstance(given, str):
        raise ZoneError(f"the text of a zone must be that of a master file, not {given!r}")
    return given


def _wrong(name: str, wanted: str, given: Any) -> ConfigError:
    """The exception for an argument that is not what is wanted."""
    return ConfigError(f"{name} must be {wanted}, not {given!r}")
