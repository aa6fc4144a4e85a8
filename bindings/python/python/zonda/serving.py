"""Has handlers answer the queries that wait, in the thread of the event loop.

The core makes a descriptor readable when queries wait. A turn of the loop takes a batch of them,
calls the handler of each, and gives the replies back in one call. Most coroutines end without
having waited for anything: their first step is taken at once, and no task is made for them. One
that waits is handed to a task that stood ready and was the current task from its first step on, so
that timeouts and task groups work in it as they do everywhere. Each query has a context of its own
(``contextvars``). asyncio keeps to itself how a task becomes the current one; where that is not to
be had, each coroutine is a task from the start, which costs more and means the same.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, Optional, TypeAlias, Union

from ._core import Core, Query, Record, Reply, log_lines
from .arguments import labels_of, name_of
from .errors import RecordError

if TYPE_CHECKING:
    from ._core import _One, _Taken

log = logging.getLogger("zonda")

# What a function may return: records for the answer, or nothing.
Answer: TypeAlias = Union[Record, "_One", Iterable["_One"], None]
# Has what is behind a middleware fill the reply.
CallNext: TypeAlias = Callable[[], Awaitable[None]]
_Result: TypeAlias = Union[Answer, Awaitable[Answer]]
if TYPE_CHECKING:
    # Fills a reply; may return records for the answer, or an awaitable of them. Further parameters
    # are labels that its pattern captures; type checkers take up to two of them in front.
    Handler: TypeAlias = Union[
        Callable[[Query, Reply], _Result],
        Callable[Concatenate[Query, Reply, ...], _Result],
        Callable[Concatenate[str, Query, Reply, ...], _Result],
        Callable[Concatenate[str, str, Query, Reply, ...], _Result],
    ]
    # Sees all queries and, once it has awaited `CallNext`, their replies.
    Middleware: TypeAlias = Union[
        Callable[[Query, Reply, CallNext], _Result],
        Callable[Concatenate[Query, Reply, CallNext, ...], _Result],
        Callable[Concatenate[str, Query, Reply, CallNext, ...], _Result],
        Callable[Concatenate[str, str, Query, Reply, CallNext, ...], _Result],
    ]
else:  # Python 3.10 knows no `...` in `Concatenate`
    Handler: TypeAlias = Union[Callable[[Query, Reply], _Result], Callable[..., _Result]]
    Middleware: TypeAlias = Union[
        Callable[[Query, Reply, CallNext], _Result], Callable[..., _Result]
    ]

# A handler and a middleware once their parameters are told apart.
Called: TypeAlias = Callable[[Query, Reply], _Result]
Layer: TypeAlias = Callable[[Query, Reply, CallNext], _Result]

# Fills the reply to a query whose code has raised an exception; may return records.
ErrorHandler: TypeAlias = Callable[[Any, Query, Reply], _Result]

# What calls the code that runs, if it is a handler's, or in a task that a handler has begun.
_caller: ContextVar[Pump | None] = ContextVar("_caller", default=None)

# The core answers what is late; only then is the code told, seconds.
_GRACE = 0.2


def _stay(_loop: asyncio.AbstractEventLoop, _task: asyncio.Task[Any]) -> None:
    """Leaves the current task as it is."""


# What makes a task the current one, and what makes it that no longer.
_PRIVATE: list[Any] = [
    getattr(asyncio.tasks, name, None) for name in ("_enter_task", "_leave_task")
]
# Whether coroutines take their first step outside of a task of their own.
_TAKES_STEPS = None not in _PRIVATE
_enter_task, _leave_task = _PRIVATE if _TAKES_STEPS else (_stay, _stay)


class Pump:
    """Moves queries and replies between the core and handlers."""

    def __init__(
        self,
        core: Core,
        answers: Mapping[Optional[int], Called],
        guarded: Callable[[Optional[int], Sequence[int]], Called],
        deadline: float,
    ) -> None:
        """Of a core, what answers by the numbers of handlers, and what does behind guards."""
        self.loop = asyncio.get_running_loop()
        self.deadline = deadline
        self._core = core
        self._answers = answers
        self._guarded = guarded
        self._spare: _Follower | None = None
        self._following: set[_Follower] = set()
        self._finished: list[Reply] = []
        self._expected: dict[int, asyncio.Future[bytes | None]] = {}
        # Of all turns, and so of all handlers.
        self.context().run(self.loop.add_reader, core.wake_fd, self._turn)

    def context(self) -> Context:
        """A context of code that the app calls, which does not wait for the app's end."""
        context = copy_context()
        context.run(_caller.set, self)
        return context

    def is_calling(self) -> bool:
        """Whether a handler or the lifespan is what asks, or a task that one of them has begun."""
        return _caller.get() is self

    def close(self) -> None:
        """Has no more turns."""
        self.loop.remove_reader(self._core.wake_fd)
        self._turn()
        if self._spare is not None:
            self._spare.task.cancel()
            self._spare = None  # its context refers to this object

    async def drain(self, seconds: float) -> None:
        """Waits until all code has answered that has begun to, at most for so long."""
        self._turn()
        if self._following:
            tasks = [follower.task for follower in self._following]
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.sleep(0)
        self._flush()

    def expect(self, number: int) -> asyncio.Future[bytes | None]:
        """The reply that will come under a number."""
        return self._expected.setdefault(number, self.loop.create_future())

    def failed(self, query: Query, reply: Reply, error: BaseException) -> None:
        """Answers SERVFAIL, and logs why."""
        reply._fail()
        _say_where(error, query)
        where = "" if query.pattern is None else f", the handler of {query.pattern},"
        what = (query.name, query.type, where)
        log.error("the code that answers %s %s%s failed", *what, exc_info=error)

    def finished(self, reply: Reply) -> None:
        """Sends a reply, together with others that are finished in the same turn of the loop."""
        if not self._finished:
            self.loop.call_soon(self._flush)
        self._finished.append(reply)

    def follow(self, follower: _Follower) -> None:
        """Keeps a follower, as the loop does not."""
        self._following.add(follower)

    def forget(self, follower: _Follower) -> None:
        """Keeps it no longer."""
        self._following.discard(follower)

    def _flush(self) -> None:
        """Sends what is finished."""
        if self._finished:
            finished, self._finished = self._finished, []
            self._serve(self._core.complete(finished))

    def _turn(self) -> None:
        """Deals with all that the core has."""
        queries, more = self._core.take()
        if more:
            self.loop.call_soon(self._turn)
        for number, message in self._core.results():
            future = self._expected.pop(number, None)
            if future is not None and not future.done():
                future.set_result(message)
        for level, line, event, fields in log_lines():
            log.log(level, "%s", line, extra={"event": event, "fields": dict(fields)})
        if queries:
            self._serve(queries)

    def _serve(self, queries: list[_Taken]) -> None:
        """Has a batch answered, and what handlers leave by those of wider patterns."""
        while queries:
            done: list[Reply] = []
            try:
                self._call(queries, done)
            finally:
                queries = self._core.complete(done)

    def _call(self, queries: list[_Taken], done: list[Reply]) -> None:
        """Has what answers a batch called; replies are done then, but for those that wait."""
        loop, answers = self.loop, self._answers
        follower = self._ready()
        _enter_task(loop, follower.task)
        try:
            for number, guards, query, reply in queries:
                answer = answers.get(number) if guards is None else None
                if answer is None and (number is not None or guards is not None):
                    answer = self._guarded(number, guards or ())  # or it was removed meanwhile
                if answer is None:
                    done.append(reply)
                    continue
                try:
                    context = copy_context()
                    result = context.run(answer, query, reply)
                    if result is not None:
                        coroutine = _coroutine(result)
                        try:
                            waits_for = None  # for the next turn of the loop
                            if _TAKES_STEPS:
                                waits_for = context.run(coroutine.send, None)
                        except StopIteration as end:  # the usual end
                            if end.value is not None:
                                reply.answer(end.value)
                        else:
                            follower.take_over(query, reply, coroutine, context, waits_for)
                            self._spare = None
                            _leave_task(loop, follower.task)
                            follower = self._ready()
                            _enter_task(loop, follower.task)
                            continue
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # SystemExit, too: a query does not end a server
                    self.failed(query, reply, error)
                done.append(reply)
        finally:
            _leave_task(loop, follower.task)

    def _ready(self) -> _Follower:
        """A follower without work."""
        if self._spare is None or not self._spare.is_ready():
            self._spare = _Follower(self)
        return self._spare


def _coroutine(result: Any) -> Coroutine[Any, Any, Any]:
    """What a handler returned, as a coroutine."""
    return result if isinstance(result, types.CoroutineType) else _awaited(result)


async def _awaited(result: Any) -> Any:
    """Awaits what can be awaited; what cannot be are records."""
    return await result if inspect.isawaitable(result) else result


async def settle(result: Any, reply: Reply) -> None:
    """Awaits what a handler returned, if it can be, and puts records into the answer."""
    if inspect.isawaitable(result):
        result = await result
    if result is not None:
        reply.answer(result)


class Recovery(NamedTuple):
    """A function that answers where code has raised an exception."""

    kind: type[Exception]
    """The class of the exceptions."""
    function: ErrorHandler
    """What is called with an exception, query and reply."""
    suffix: str | None
    """The names that it is for, and all below: those of a router; ``None`` stands for all."""

    @property
    def labels(self) -> int:
        """The number of the suffix's labels."""
        return labels_of(self.suffix or "")


def recovering(answer: Called, recoveries: Sequence[Recovery]) -> Called:
    """What answers, and has the first of the functions for an exception's class answer that fills
    the reply, where it raises one."""

    def answer_or_recover(query: Query, reply: Reply) -> Awaitable[None] | None:
        try:
            result = answer(query, reply)
            if inspect.isawaitable(result):
                return rest(result, query, reply)
            if result is not None:
                reply.answer(result)
        except Exception as error:
            return recover(error, query, reply)
        return None

    async def rest(result: Awaitable[Any], query: Query, reply: Reply) -> None:
        try:
            await settle(result, reply)
        except Exception as error:
            await recover(error, query, reply)

    async def recover(error: Exception, query: Query, reply: Reply) -> None:
        _say_where(error, query)
        for kind, function, suffix in recoveries:
            if not isinstance(error, kind) or not (suffix is None or query._is_below(suffix)):
                continue
            reply.clear()  # what was added before is not this one's
            try:
                await settle(function(error, query, reply), reply)
            except Exception:
                where = (query.name, query.type)
                log.exception("the code that answers for errors of %s %s failed", *where)
            else:
                if reply.is_answered:
                    return
        raise error

    return answer_or_recover


def _say_where(error: BaseException, query: Query) -> None:
    """Notes in the exception of a wrong record what handler it is of."""
    if isinstance(error, RecordError) and error.pattern is None:
        error.pattern = query.pattern


class _Follower:
    """A task that stands ready to go on with a coroutine that waits."""

    __slots__ = ("_ready", "_work", "_is_done", "_is_late", "_pump", "task")

    def __init__(self, pump: Pump) -> None:
        self._pump = pump
        self._ready: asyncio.Future[None] = pump.loop.create_future()
        self._work: tuple[Query, Reply, Coroutine[Any, Any, Any], Context, Any] | None = None
        self._is_done = False
        self._is_late = False
        self.task = pump.loop.create_task(self._run())
        self.task.add_done_callback(self._ended)

    def is_ready(self) -> bool:
        """Whether nothing was done with it, nor to it."""
        return not self._ready.done() and not self.task.done()

    def take_over(
        self,
        query: Query,
        reply: Reply,
        coroutine: Coroutine[Any, Any, Any],
        context: Context,
        waits_for: Any,
    ) -> None:
        """Goes on with a coroutine that has taken its first step, which it was the task of."""
        self._work = query, reply, coroutine, context, waits_for
        self._pump.follow(self)
        if not self._ready.done():  # it is when the first step has cancelled its task
            self._ready.set_result(None)

    async def _run(self) -> None:
        """Waits for work, and does it."""
        error: BaseException | None = None
        try:
            await self._ready
        except asyncio.CancelledError as cancelled:
            if self._work is None:
                raise
            error = cancelled
        assert self._work is not None
        query, reply, coroutine, context, waits_for = self._work
        loop, deadline = self._pump.loop, self._pump.deadline
        timer = loop.call_later(deadline + _GRACE, self._give_up)
        try:
            result = await _rest(coroutine, context, waits_for, error)
            if result is not None:
                reply.answer(result)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            if self._is_late:
                reply._fail()
                log.warning(
                    "the code that answers %s %s was cancelled, as it took longer than %g s",
                    query.name,
                    query.type,
                    deadline,
                )
            else:
                self._pump.failed(query, reply, raised)
        timer.cancel()
        self._is_done = True
        self._pump.finished(reply)

    def _give_up(self) -> None:
        """Cancels code that has not answered in time."""
        self._is_late = True
        self.task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Answers SERVFAIL if the task was cancelled before it could do anything."""
        self._pump.forget(self)
        if self._work is not None and not self._is_done:
            _, reply, coroutine, _, _ = self._work
            coroutine.close()
            reply._fail()
            self._pump.finished(reply)


@types.coroutine
def _rest(
    coroutine: Coroutine[Any, Any, Any],
    context: Context,
    waits_for: Any,
    error: BaseException | None,
) -> Generator[Any, Any, Any]:
    """All steps of a coroutine but its first."""
    value = None
    while True:
        if error is None:
            try:
                value = yield waits_for
            except BaseException as raised:
                error = raised
        try:
            if error is None:
                waits_for = context.run(coroutine.send, value)
            else:
                thrown, error = error, None
                waits_for = context.run(coroutine.throw, thrown)
        except StopIteration as end:
            return end.value


# Has a reply filled, with nothing to return.
Filling = Callable[[Query, Reply], Awaitable[None]]

# Functions of middleware that are called on one stack, which has room for few hundred of them.
_STACKED_MAX = 32


def around(layers: Sequence[Layer], inner: Filling) -> Called:
    """What passes middleware, in its order, before it comes to what is inside."""

    def answer(query: Query, reply: Reply) -> Awaitable[None]:
        reply._pass_handlers()  # what is inside calls them
        return _pass(layers, 0, inner, query, reply, [])

    return answer


async def _pass(
    layers: Sequence[Layer],
    place: int,
    inner: Filling,
    query: Query,
    reply: Reply,
    ended: list[int],
) -> None:
    """Calls middleware from a place on; each function has what is behind it called. ``ended`` are
    the places of what has ended without an exception, the innermost first."""
    if place == len(layers):
        await inner(query, reply)
    else:
        await _call_layer(layers, place, inner, query, reply, ended)
    ended.append(place)


async def _call_layer(
    layers: Sequence[Layer],
    place: int,
    inner: Filling,
    query: Query,
    reply: Reply,
    ended: list[int],
) -> None:
    """Calls the middleware at a place. One that has not answered must have waited for what is behind
    it: what it leaves out, or what that raises, must not open what is guarded."""
    is_called = False

    def call_next() -> Awaitable[None]:
        nonlocal is_called
        if is_called:
            raise RuntimeError("call_next() was called twice: what is behind it answers once")
        is_called = True
        behind = _pass(layers, place + 1, inner, query, reply, ended)
        # A task begins with an empty stack.
        return behind if (place + 1) % _STACKED_MAX else asyncio.ensure_future(behind)

    layer = layers[place]
    await settle(layer(query, reply, call_next), reply)
    if not reply.is_answered and ended[-1:] != [place + 1]:
        why = "and without having waited for `call_next()`"
        if is_called:
            why += ", or although that failed"
        raise RuntimeError(
            f"the middleware {name_of(layer)} ended without an answer, {why}: answer, or await or"
            " return `call_next()` to leave the query to what is behind it"
        )
