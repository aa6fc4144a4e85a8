"""Exceptions with codes, by which programs tell them apart.

An address that cannot be listened on is an ``OSError`` with the system's ``errno``.
"""

from __future__ import annotations

__all__ = [
    "Error",
    "ConfigError",
    "ConfigTypeError",
    "NoReply",
    "PatternError",
    "QueryError",
    "RecordError",
    "RecordTypeError",
    "ServerError",
    "StateError",
    "StoreError",
    "ZoneError",
]


class Error(Exception):
    """What the exceptions of this package have in common."""

    code = "ZONDA_SERVER"
    """A word for the kind of exception, the same in all languages."""


class ServerError(Error, RuntimeError):
    """The server had to stop, or a part of it cannot start."""

    code = "ZONDA_SERVER"


class ConfigError(Error, ValueError):
    """The configuration file, or an argument of the app, is wrong."""

    code = "ZONDA_CONFIG"


class ConfigTypeError(ConfigError, TypeError):
    """A function of the program, or another argument, is of another type than is wanted."""


class PatternError(Error, ValueError):
    """The pattern of a handler is wrong."""

    code = "ZONDA_PATTERN"


class ZoneError(Error, ValueError):
    """The text of a zone is wrong, or zones cannot be loaded."""

    code = "ZONDA_ZONE"


class StateError(Error, RuntimeError):
    """The app does not run, or runs already; or a reply was sent already."""

    code = "ZONDA_STATE"


class QueryError(Error, ValueError):
    """A question of the program, or the client that it names, is wrong."""

    code = "ZONDA_QUERY"


class RecordError(Error, ValueError):
    """A record, or something else of a reply, is wrong. Where a record was to be put into a reply, the exception says where."""

    code = "ZONDA_RECORD"

    section: str | None = None
    """The section of the reply: ``"answers"``, ``"authorities"`` or ``"additionals"``."""
    index: int | None = None
    """The index that the record would have in the section."""
    value: object = None
    """What was given as the record."""
    pattern: str | None = None
    """The pattern of the handler that the query had come to."""


class RecordTypeError(RecordError, TypeError):
    """What was given for a record, or for a part of one, is of another type."""


class StoreError(Error, OSError):
    """A database cannot be reached, or says that something is wrong."""

    code = "ZONDA_STORE"


class NoReply(Error):
    """No reply was sent to a query of the program itself."""

    code = "ZONDA_NO_REPLY"
