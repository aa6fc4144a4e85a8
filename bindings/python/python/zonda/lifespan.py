"""What a program has for as long as its app runs: an async context manager around that."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import TYPE_CHECKING, Any, Optional, TypeAlias, Union

from .errors import ConfigError, StateError

if TYPE_CHECKING:
    from .app import App

_Manager: TypeAlias = AbstractAsyncContextManager[Optional[Mapping[str, Any]], Optional[bool]]
# Given an app, makes what is entered before it listens and left behind its last reply; what that
# yields, if it is not `None`, are values for `App.state`. A function that yields once will do.
Lifespan: TypeAlias = Union[
    Callable[["App"], _Manager],
    Callable[["App"], "AsyncIterator[Optional[Mapping[str, Any]]]"],
]


def checked(lifespan: Lifespan | None) -> Callable[[App], Any] | None:
    """A lifespan, also of a function that yields and is not decorated."""
    if lifespan is not None and not callable(lifespan):
        raise ConfigError(f"lifespan must be a function of the app, not {lifespan!r}")
    if inspect.isasyncgenfunction(lifespan):
        return contextlib.asynccontextmanager(lifespan)
    return lifespan


class LifespanTask:
    """Enters and leaves a context manager in one task, as task groups and timeouts want it."""

    def __init__(
        self, lifespan: Callable[[App], Any], app: App, context: Context, broken: Callable[[], object]
    ) -> None:
        """Begins to enter it, in a context. ``broken`` is called when it has ended by itself, such
        as by a task group of which a task has failed."""
        loop = asyncio.get_running_loop()
        self._broken = broken
        self._is_given_up = False
        self._may_leave = asyncio.Event()
        self._entered: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._task = context.run(loop.create_task, self._run(lifespan, app))
        self._task.add_done_callback(self._ended)

    async def enter(self) -> dict[str, Any]:
        """What it yields, once it is entered; raises what keeps it from that."""
        try:
            return await asyncio.shield(self._entered)
        except asyncio.CancelledError:
            if not self._is_given_up:
                raise
            raise StateError("the app was stopped before it had started") from None

    async def leave(self) -> None:
        """Leaves it, and raises what it raises then; one that is still being entered is cancelled,
        and what kept it from being entered is not raised again."""
        is_entered = self._entered.done() and not self._entered.cancelled()
        self._may_leave.set()  # also for one that goes on although it is cancelled
        if is_entered and self._entered.exception() is None:
            await asyncio.wait([self._task])
            if self._task.cancelled():
                raise StateError("the task of the lifespan was cancelled")
            self._task.result()
        else:
            self.give_up()
            await asyncio.wait([self._task])

    def give_up(self) -> None:
        """Cancels it if it is still being entered."""
        if not self._entered.done():
            self._is_given_up = True
            self._task.cancel()

    async def _run(self, lifespan: Callable[[App], Any], app: App) -> None:
        """Enters it, waits until it is to be left, and leaves it."""
        manager: Any = lifespan(app)
        if not hasattr(manager, "__aenter__"):
            raise TypeError(f"lifespan(app) must give an async context manager, not {manager!r}")
        async with manager as state:
            if state is not None and not isinstance(state, Mapping):
                raise TypeError(f"a lifespan yields a mapping or nothing, not {state!r}")
            self._entered.set_result(dict(state or {}))
            await self._may_leave.wait()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Tells what waits for its being entered that it never is, or the app that it has ended."""
        error = None if task.cancelled() else task.exception()
        if self._entered.done():
            if not self._may_leave.is_set() and not task.cancelled():  # by a loop that ends
                self._broken()
        elif error is None:
            self._entered.cancel()
        else:
            self._entered.set_exception(error)
