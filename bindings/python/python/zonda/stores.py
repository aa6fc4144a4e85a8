"""Records of stores, and stores of your own.

A store that is written in Python is called in a thread of its own for each zone that follows it.
The thread is Python's, and waits in a call of Python's, so that a store which never returns keeps
neither the app from stopping nor the process from ending.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from ._core import Calls


class RecordSet(NamedTuple):
    """All records of one name and type, as a store has them."""

    owner: str
    """The name, which is always complete; ours write it in lower case and without its final dot."""
    rtype: str
    """The type, such as ``"AAAA"`` or ``"TYPE65280"``."""
    ttl: int
    """Time to live, seconds."""
    data: Sequence[str]
    """The data of each record, as in a zone file; empty where a store of ours cannot read them."""


# What a store of your own gives: a `RecordSet`, or a tuple of the same.
_Records = tuple[str, str, int, Sequence[str]]


class OwnStore(Protocol):
    """What a class of yours has that is a store. Nothing need be inherited.

    The methods may block. They are called one after the other, in a thread of their own for each
    zone. When one raises, the zone keeps the records that it has; the log says so, with the
    traceback, and all is read again after a moment.
    """

    def load(self, zone: str, /) -> Iterable[_Records]:
        """All records of a zone, whose name is in lower case and without its final dot; those of
        others are passed over."""

    def get(self, owner: str, /) -> Iterable[_Records]:
        """All records of an owner that was said to have changed."""

    def watch(self, zone: str, changed: Callable[..., None], /) -> None:
        """Takes note that ``changed(owner)`` is to be called when records of an owner changed, and
        ``changed()`` when any may have; called once whenever the app starts, before ``load``.

        ``changed`` does not block, and may be called from any thread.
        """


def start(store: OwnStore, calls: Calls) -> None:
    """Begins to call a store."""
    answer = threading.Thread(target=_answer, args=(store, calls), name="zonda-store", daemon=True)
    answer.start()


def _answer(store: OwnStore, calls: Calls) -> None:
    """Calls a store for as long as somebody may ask."""
    while os.read(calls.fd, 1):
        call = calls.take()
        if call is None:
            continue
        method, name = call
        try:
            if method == "watch":
                store.watch(name, calls.changed)
                calls.give([])
            else:
                calls.give([tuple(records) for records in getattr(store, method)(name)])
        except BaseException:  # SystemExit, too: a store does not end a server
            calls.fail(traceback.format_exc().rstrip())
