"""Exceptions with codes, by which programs tell them apart.

An address that cannot be listened on is an ``OSError`` with the system's ``errno``.
"""

from __future__ import annotations

__all__ = ["Error", "ConfigError", "NoReply", "PatternError", "StateError", "ZoneError"]


class Error(Exception):
    """What all exceptions of this package have in common, but those of arguments and records."""

    code = "ZONDA_SERVER"
    """A word for the kind of exception, the same in all languages."""


class ConfigError(Error, ValueError):
    """The configuration file, or an argument of the app, is wrong."""

    code = "ZONDA_CONFIG"


class PatternError(Error, ValueError):
    """The pattern of a handler is wrong."""

    code = "ZONDA_PATTERN"


class ZoneError(Error, ValueError):
    """The text of a zone is wrong, or zones cannot be loaded."""

    code = "ZONDA_ZONE"


class StateError(Error, RuntimeError):
    """The app does not run, or runs already."""

    code = "ZONDA_STATE"


class NoReply(Error):
    """No reply was sent to a query of the program itself."""

    code = "ZONDA_NO_REPLY"
