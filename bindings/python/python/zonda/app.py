"""An app: what it answers from, and the server that it becomes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, TypeVar, overload

from . import options
from ._core import (
    Core,
    Query,
    Reply,
    Store,
    canonical_pattern,
    check_suffix,
    question,
    read_reply,
)
from .arguments import name_of, with_captures
from .errors import (
    ConfigError,
    ConfigTypeError,
    NoReply,
    PatternTypeError,
    StateError,
    ZoneError,
)
from .lifespan import Lifespan, LifespanTask, checked
from .options import Address, Addresses
from .serving import (
    Called,
    CallNext,
    ErrorHandler,
    Filling,
    Handler,
    Layer,
    Middleware,
    Pump,
    Recovery,
    around,
    log,
    recovering,
    settle,
)
from .stores import OwnStore

if TYPE_CHECKING:
    from .records import _RecordType

# A handler and a middleware, which decorators give back as they are.
_Handler = TypeVar("_Handler", bound=Handler)
_Middleware = TypeVar("_Middleware", bound=Middleware)
_ErrorHandler = TypeVar("_ErrorHandler", bound=ErrorHandler)
_Result = TypeVar("_Result")
_Path = str | os.PathLike[str]

# Routes that the core puts into force in far less than a millisecond.
_FEW_ROUTES = 256

# How often it is looked whether the server had to stop, seconds.
_LOOK_INTERVAL = 1.0

# How often a free port is asked for.
_PORT_TRIES = 16

# Addresses to listen on and of servers, as errors show them.
_LISTEN, _SERVER = '"127.0.0.1:5300"', '"192.0.2.53"'


class FailedZone(NamedTuple):
    """A zone, or a file or directory of zones, that could not be loaded."""

    name: str | None
    """The zone's name, with its final dot; ``None`` where a file or directory of zones could not be
    read so far that the names of its zones are known."""
    is_served: bool
    """Whether a former version is served."""
    error: str
    """What is wrong, behind its place."""


class App:
    """A DNS server that answers names with functions, zones, and other servers.

    Addresses to answer on are texts such as ``"127.0.0.1:5300"`` or ``"[::1]:5300"``, or pairs such
    as ``("127.0.0.1", 5300)``; one or several. Port 0 is a free one. They take the place of those
    in the configuration file; with none, ``[]``, nothing is listened on, and queries come by
    `query` alone.
    """

    def __init__(
        self,
        listen: Addresses | None = None,
        config: _Path | None = None,
        *,
        workers: int | None = None,
        metrics: Address | None = None,
        deadline: float = 5.0,
        waiting_max: int = 65_536,
        allow_failed_zones: bool = False,
        reuse_port: bool | None = None,
        lifespan: Lifespan | None = None,
        shares_addresses: bool | None = None,
    ) -> None:
        """An app that answers nothing yet.

        config: a configuration file, as ``zonda serve --config`` takes it.
        workers: threads that answer UDP; one for each CPU unless told otherwise.
        metrics: an address for metrics of Prometheus, /health, /ready and /v1/version; loopback,
            unless the configuration file has a token.
        deadline: seconds after which a query that no handler has answered is answered SERVFAIL.
        waiting_max: queries that may wait for handlers; more are answered SERVFAIL.
        allow_failed_zones: whether the app starts also if zones that are given as files or texts
            cannot be loaded; their names are SERVFAIL then, and ``failed_zones`` has them.
        reuse_port: whether other processes of the program answer on the same addresses, which the
            system then spreads clients over; each of them says so.
        lifespan: a function of the app that gives an async context manager, which is entered before
            the app listens, and left when it has sent its last reply; ``state`` has what it yields.
        shares_addresses: the former name of ``reuse_port``.

        Raises ``ConfigError`` for an argument that is none of these.
        """
        if shares_addresses is not None:
            former = "App(shares_addresses=…) is called App(reuse_port=…)"
            warnings.warn(former, DeprecationWarning, stacklevel=2)
            if reuse_port is not None:
                raise ConfigError("shares_addresses is the former name of reuse_port: give that")
            reuse_port = options.yes_or_no("shares_addresses", shares_addresses)
        self._listen = [] if listen is None else options.addresses("listen", listen, _LISTEN)
        self._listens_nowhere = listen is not None and not self._listen
        self._config = options.path("config", config)
        self._workers = options.workers(workers)
        self._metrics = options.metrics(metrics)
        self._deadline = options.seconds("deadline", deadline)
        self._waiting_max = options.count("waiting_max", waiting_max)
        self._allow_failed_zones = options.yes_or_no("allow_failed_zones", allow_failed_zones)
        self._reuse_port = reuse_port is not None and options.yes_or_no("reuse_port", reuse_port)
        self._lifespan = checked(lifespan)
        # What is to be left when the app has stopped, and the values that it has put into `state`.
        self._in_lifespan: LifespanTask | None = None
        self._state: dict[str, Any] = {}
        self._state_of_lifespan: dict[str, Any] = {}
        self._is_entering = False
        self._zones: list[tuple[str, str]] = []
        self._texts: dict[str, tuple[str, str]] = {}
        # Names of zones that were given since the app was made, had stopped or could not start.
        self._given_zones: set[str] = set()
        self._stores: list[tuple[str, Store | OwnStore]] = []
        self._forward: list[str] = []
        self._middleware: list[Layer] = []
        self._routes: dict[str, int] = {}
        self._handlers: dict[int, Called] = {}
        # Functions that answer where handlers have raised exceptions, those of routers first.
        self._error_handlers: list[Recovery] = []
        # Functions that queries for the names of a pattern pass: its guard, by the number that the
        # core knows it by; and these numbers by patterns.
        self._guards: list[list[Layer]] = []
        self._guard_numbers: dict[str, int] = {}
        self._answers: dict[Optional[int], Called] = {}
        self._next_number = 0
        # What the core is still to be told of routes and guards, once in a turn of the loop, and
        # what is settled when it has put into force what it was told last.
        self._added: dict[int, str] = {}
        self._removed: list[int] = []
        self._added_guards: list[tuple[str, int]] = []
        self._is_publish_due = False
        self._is_started = False
        self._published: asyncio.Future[bytes | None] | None = None
        self._core: Core | None = None
        self._pump: Pump | None = None
        # What starts and what stops the core, which both go on when nobody waits for them any more.
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        # Done when the app has stopped, with the reason why it had to; that of a run stays until
        # the app starts again.
        self._ended: asyncio.Future[None] | None = None

    def handle(
        self, pattern: str, types: _RecordType | Iterable[_RecordType] | None = None
    ) -> Callable[[_Handler], _Handler]:
        """Has a function answer the names of a pattern: ``@app.handle("*.example.com", ["A"])``.

        The function is called with query and reply, and may be a coroutine function; further
        parameters are given the labels that the pattern captures under their names. What it does
        not answer goes to the handler of the next wider pattern, and behind the last one to the
        zones. It may return records instead of putting them into the reply.
        """

        def decorate(function: _Handler) -> _Handler:
            self.add_handler(pattern, function, types)
            return function

        _route(pattern, types)
        return decorate

    def add_handler(
        self,
        pattern: str,
        function: Handler,
        types: _RecordType | Iterable[_RecordType] | None = None,
    ) -> None:
        """As ``handle``; takes the place of a handler of the same pattern. May be called while the
        app runs, from the event loop's thread."""
        _check(function, "a handler")
        route = _route(pattern, types)
        called = with_captures(function, "the handler", ("query", "reply"), pattern)
        self._drop(route)
        number = self._next_number
        self._next_number += 1
        self._routes[route] = number
        self._handlers[number] = called
        self._added[number] = route
        if self._core is not None:
            self._answers[number] = self._composed(called)
        self._publish()

    def remove_handler(
        self, pattern: str, types: _RecordType | Iterable[_RecordType] | None = None
    ) -> bool:
        """Takes a handler out; whether there was one."""
        route = _route(pattern, types)
        if route not in self._routes:
            return False
        self._drop(route)
        self._publish()
        return True

    @overload
    def middleware(self, function: _Middleware) -> _Middleware: ...

    @overload
    def middleware(self, function: str) -> Callable[[_Middleware], _Middleware]: ...

    def middleware(self, function: Any) -> Any:
        """Has all queries pass a function: ``@app.middleware``; or those for the names of a pattern
        alone, so that others do not reach Python for it: ``@app.middleware("*.example.com")``. What
        is for all queries comes first, then what is for the widest pattern.

        It is called with query, reply, and ``call_next``, which has what is behind it fill the
        reply: further middleware, then the handler, or else the zones and other servers.
        ``await call_next()`` comes back when the reply is there; a function that is no coroutine
        function returns ``call_next()``. One that does not call it answers in place of all that; if
        it does not answer either, the query is answered SERVFAIL. Further
        parameters are given the labels that its pattern captures.
        """
        if isinstance(function, str):
            route = _route(function, None)
            return lambda function: self._add_middleware(function, route)
        return self._add_middleware(function, None)

    def _add_middleware(self, function: _Middleware, route: str | None) -> _Middleware:
        """Has all queries pass a function, or those of a route."""
        _check(function, "middleware")
        own = ("query", "reply", "call_next")
        called = with_captures(function, "the middleware", own, route or "")
        if route is None:
            self._middleware.append(called)
            if self._core is not None:
                self._compose()
        else:
            number = self._guard_number(route)
            self._guards[number].append(self._in_guard(number, called))
        self._publish()
        return function

    def _guard_number(self, route: str) -> int:
        """The number of what queries for a route pass."""
        if route not in self._guard_numbers:
            number = len(self._guards)
            self._guards.append([])
            self._guard_numbers[route] = number
            self._added_guards.append((route, number))
        return self._guard_numbers[route]

    def _in_guard(self, number: int, function: Layer) -> Layer:
        """Middleware of a guard, for which queries capture the labels of the guard's pattern as
        long as it runs itself; what is behind it has those of its own route."""

        async def layer(query: Query, reply: Reply, call_next: CallNext) -> None:
            enter = self._running().enter_guard

            async def go_on() -> None:
                enter(query, None)
                try:
                    await call_next()
                finally:
                    enter(query, number)

            enter(query, number)
            try:
                await settle(function(query, reply, go_on), reply)
            finally:
                enter(query, None)

        layer.__qualname__ = name_of(function)
        return layer

    @overload
    def on_error(self, kind: type[Exception]) -> Callable[[_ErrorHandler], _ErrorHandler]: ...

    @overload
    def on_error(self, kind: _ErrorHandler) -> _ErrorHandler: ...

    def on_error(self, kind: Any) -> Any:
        """Has a function answer queries whose handler or middleware has raised an exception of a
        class, ``@app.on_error(KeyError)``, or any exception, ``@app.on_error``.

        It is called with the exception, query and reply, may be a coroutine function, and may
        return records. Of several functions, those that were added first are called first, and
        those of routers before those of the app. A query that none of them answers is SERVFAIL, and
        the exception is logged.
        """
        return self._on_error(kind, None)

    def _on_error(self, kind: Any, suffix: str | None) -> Any:
        """As ``on_error``; with a suffix, for queries for that and for names below it."""
        if isinstance(kind, type):
            if not issubclass(kind, Exception):
                wanted = "a subclass of Exception or a function"
                raise ConfigTypeError(f"on_error takes {wanted}, not {kind!r}")
            return lambda function: self._add_error_handler(Recovery(kind, function, suffix))
        return self._add_error_handler(Recovery(Exception, kind, suffix))

    def _add_error_handler(self, recovery: Recovery) -> ErrorHandler:
        """Has a function answer where an exception of a class was raised."""
        function = recovery.function
        _check(function, "an error handler")
        called = with_captures(function, "the error handler", ("error", "query", "reply"), "")
        self._error_handlers.append(recovery._replace(function=called))
        # In a stable order: those with the longest suffix first, those of the app last.
        self._error_handlers.sort(key=lambda it: -it.labels)
        if self._core is not None:
            self._compose()
        return function

    def route(self, suffix: str) -> Router:
        """The names below a suffix, whose patterns leave the suffix out."""
        return Router(self, suffix)

    def zone(self, name: str, file: _Path | None = None, *, text: str | None = None) -> None:
        """Serves a zone from a master file, from JSON if the file's name ends in ``.json``, or from
        the text of a master file."""
        self._before_start()
        self._check_new_zone(name)
        if file is not None and text is None:
            self._zones.append((name, os.fsdecode(file)))
        elif text is not None and file is None:
            self._texts[_plain(name)] = name, options.zone_text(text)
        else:
            raise ConfigTypeError("a zone has either a file or a text")
        self._given_zones.add(_plain(name))

    def store(self, zone: str, store: Store | OwnStore) -> None:
        """Serves a zone that has what a store has, and follows its changes. A store may serve
        several zones.

        A zone whose store cannot be reached within 3 seconds when the app starts is SERVFAIL until
        it can; later it keeps what it had. The log tells both.
        """
        self._before_start()
        self._check_new_zone(zone)
        _check_store(store)
        self._stores.append((zone, store))
        self._given_zones.add(_plain(zone))

    def _check_new_zone(self, name: str) -> None:
        """Raises ``ZoneError`` for what is not the name of a zone, or of one that was given."""
        options.zone_name(name)
        if _plain(name) in self._given_zones:
            later = "set_zone_text(), set_zone_file() or set_zone_store() once the app runs"
            raise ZoneError(f"zone {name!r} is given twice: keep one, or replace it by {later}")

    def forward(self, *servers: Address) -> None:
        """Asks servers for all names that neither handlers nor zones have: texts such as
        ``"192.0.2.53"``, or pairs of address and port."""
        self._before_start()
        self._forward.extend(options.addresses("forward", list(servers), _SERVER))

    async def start(self) -> None:
        """Starts the server, which answers from then on, in the running event loop.

        Raises ``ConfigError`` with all that is wrong with the configuration and with zones that are
        given as files or texts, line by line, ``ZoneError`` for such zones alone, or ``OSError``
        when an address cannot be listened on; or what the lifespan raises that is entered first.
        """
        if self._core is not None:
            raise StateError("the app runs already")
        self._given_zones.clear()  # an app that has stopped, or could not start, may have others
        self._compose()
        if self._ended is not None and self._ended.done():
            self._ended = None  # that of a former run
        self._end_of_run()
        core = Core()
        pump = Pump(core, self._answers, self._behind_guards, self._deadline)
        self._core, self._pump = core, pump
        self._starting = asyncio.get_running_loop().create_task(self._start(core))
        self._starting.add_done_callback(_note)
        try:
            await asyncio.shield(self._starting)
        except BaseException:  # it failed, was stopped, or nobody waits for it any more
            await self.stop()
            raise

    async def stop(self) -> None:
        """Answers what was received, and stops. If ``start`` is under way, that raises
        ``StateError``.

        Called by a handler, by the lifespan, or by a task that one of them has begun, it comes back
        at once, as the query of the handler waits for an answer, and the stop for the lifespan; the
        app then stops by itself. Raises what the lifespan raises when it is left.
        """
        core, pump = self._core, self._pump
        if core is None or pump is None:
            return
        stopping = self._begin_stop(core, pump)
        if pump.is_calling():
            stopping.add_done_callback(_log_failure)
        else:
            await asyncio.shield(stopping)

    def _begin_stop(self, core: Core, pump: Pump) -> asyncio.Task[None]:
        """Begins to stop, if that is not under way."""
        if self._stopping is None:
            core.give_up()
            if self._in_lifespan is not None:
                self._in_lifespan.give_up()
            self._stopping = pump.loop.create_task(self._stop(core, pump))
            ended = self._end_of_run()
            self._stopping.add_done_callback(lambda stopping: _settle(ended, stopping))
        return self._stopping

    def _stop_by_itself(self) -> None:
        """Stops, as the lifespan has ended although the app runs."""
        if self._core is not None and self._pump is not None and not self._pump.loop.is_closed():
            self._begin_stop(self._core, self._pump).add_done_callback(_log_failure)

    def __repr__(self) -> str:
        state = "not running"
        if self._core is not None:
            try:
                both = self._core.addresses()
                listeners = [f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip, port in both]
                state = f"on {', '.join(listeners)}" if listeners else "running"
            except StateError:
                state = "starting or stopping"
        middleware = len(self._middleware) + sum(map(len, self._guards))
        return f"<zonda.App {state}, handlers: {len(self._routes)}, middleware: {middleware}>"

    async def __aenter__(self) -> App:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def serve(self) -> None:
        """Runs the server until SIGINT or SIGTERM, or until it must stop."""
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        heeded = []
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, told.set)
                heeded.append(number)
            except (NotImplementedError, RuntimeError, ValueError):
                pass  # not in the main thread: somebody else looks after signals
        try:
            if not await self._started(told):
                return
            ended = self._end_of_run()
            try:
                await self._until_stopped(told)
            finally:
                await self.stop()
            await ended  # raises why it has stopped by itself
        finally:
            for number in heeded:
                loop.remove_signal_handler(number)

    async def _started(self, told: asyncio.Event) -> bool:
        """Starts, unless it is told to stop meanwhile: a lifespan may take long to enter."""
        starting, waiting = asyncio.ensure_future(self.start()), asyncio.ensure_future(told.wait())
        try:
            await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                await self.stop()
                with contextlib.suppress(StateError):
                    await starting
                return False
            await starting  # raises why it has not started
            return True
        except asyncio.CancelledError:
            starting.cancel()
            await asyncio.wait([starting])
            raise
        finally:
            waiting.cancel()

    def run(
        self, *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    ) -> None:
        """Runs the server until Ctrl-C or SIGTERM, in an event loop of its own.

        ``loop_factory=uvloop.new_event_loop`` runs it in uvloop.
        """
        _check_no_loop()
        if loop_factory is None:
            asyncio.run(self.serve())
        elif sys.version_info >= (3, 11):
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(self.serve())
        else:
            _run(self.serve(), loop_factory())

    @property
    def state(self) -> dict[str, Any]:
        """Values for handlers: what the lifespan has yielded, while the app runs, and what the
        program puts into it."""
        return self._state

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The addresses and ports that are answered on, in the order in which they were given."""
        return self._running().addresses()

    @property
    def failed_zones(self) -> list[FailedZone]:
        """The zones that could not be loaded when that was last tried, but for those of stores."""
        return [FailedZone(*zone) for zone in self._running().failed_zones()]

    async def reload(self) -> None:
        """Reads the configuration file and changed zones anew, and zones that could not be loaded
        before.

        Raises ``ConfigError`` with what is wrong with the file, which then stays in force as it
        was; or ``ZoneError`` with all zones that cannot be loaded: their former versions are served
        on, and all else is in force.
        """
        await self._in_thread(self._running().reload)

    async def set_zone_text(self, name: str, text: str) -> None:
        """Serves a zone from the text of a master file instead of a former text, or for the first
        time, and comes back when it is served. Changed files of zones are read, too.

        Raises ``ZoneError`` with what is wrong with the text, line by line; the former one stays
        in service.
        """
        options.zone_name(name)
        text = options.zone_text(text)
        await self._in_thread(self._running().set_zone_text, name, text)
        self._texts[_plain(name)] = name, text

    async def remove_zone_text(self, name: str) -> bool:
        """Takes a zone that is given as text out of service; whether there was one."""
        options.zone_name(name)
        was_there = await self._in_thread(self._running().remove_zone_text, name)
        self._texts.pop(_plain(name), None)
        return was_there

    async def set_zone_file(self, name: str, file: _Path) -> None:
        """Serves a zone from a master file, or from JSON if the file's name ends in ``.json``,
        instead of a former file or for the first time, and comes back when it is served. Also
        reads what ``reload`` does.

        Raises ``ZoneError`` or ``ConfigError`` with what is wrong, line by line; the former version
        stays in service.
        """
        options.zone_name(name)
        path = os.fsdecode(file)
        await self._in_thread(self._running().set_zone_file, name, path)
        self._zones = [it for it in self._zones if _plain(it[0]) != _plain(name)]
        self._zones.append((name, path))

    async def set_zone_store(self, zone: str, store: Store | OwnStore) -> None:
        """Serves a zone that has what a store has, instead of a former store or for the first time,
        and comes back when the store was read, after 3 seconds at most. Until it has records of a
        zone, the zone is SERVFAIL, or keeps those of the former store; the log says why.

        Raises ``ZoneError`` if the zone is served from anything but a store of the program.
        """
        options.zone_name(zone)
        _check_store(store)
        await self._in_thread(self._running().set_zone_store, zone, store)
        self._stores = [it for it in self._stores if _plain(it[0]) != _plain(zone)]
        self._stores.append((zone, store))

    async def remove_zone(self, name: str) -> bool:
        """Takes a zone of ``zone``, ``store`` or the methods above out of service; whether there
        was one. Zones of the configuration file stay."""
        options.zone_name(name)
        was_there = await self._in_thread(self._running().remove_zone, name)
        self._zones = [it for it in self._zones if _plain(it[0]) != _plain(name)]
        self._stores = [it for it in self._stores if _plain(it[0]) != _plain(name)]
        self._texts.pop(_plain(name), None)
        return was_there

    async def set_forwards(self, *servers: Address) -> None:
        """Asks these servers for all names that neither handlers nor zones have, instead of those
        before; without any, those of the configuration file. Also reads what ``reload`` does.

        Raises ``ConfigError`` with what is wrong; nothing is changed then.
        """
        texts = options.addresses("set_forwards", list(servers), _SERVER)
        await self._in_thread(self._running().set_forwards, texts)
        self._forward = texts

    async def closed(self) -> None:
        """Comes back when the app has stopped, because it was told to or an administrator asked for
        that; of an app that was not started yet, when it has started and stopped. Raises the
        exception that says why where it had to."""
        ended = self._end_of_run()
        while not ended.done():
            core = self._core
            if core is not None and self._is_started and core.is_finished():
                try:
                    await self.stop()
                except Exception:
                    pass  # `ended` has it
            await asyncio.wait([ended], timeout=_LOOK_INTERVAL)
        await ended

    def _end_of_run(self) -> asyncio.Future[None]:
        """What is done when the app has stopped that runs, or else the last one or first one."""
        loop = asyncio.get_running_loop()
        ended = self._ended
        if ended is None or not (ended.done() or ended.get_loop() is loop):
            ended = self._ended = loop.create_future()
            ended.add_done_callback(_note)
        return ended

    async def query(
        self,
        name: str,
        type: _RecordType | int = "A",
        *,
        client: Address | None = None,
        dnssec_ok: bool = False,
        options: Iterable[tuple[int, bytes]] = (),
    ) -> Reply:
        """Asks a question without sockets, as a client at an address would over TCP.

        The reply can be read like that of a handler, but not changed. If none is sent, ``NoReply``
        is raised.
        """
        message = question(name, type, dnssec_ok, list(options))
        reply = await self.query_message(message, client=client)
        if reply is None:
            raise NoReply(f"no reply was sent to {name} {type}: the query was dropped")
        return read_reply(reply)

    async def query_message(
        self, message: bytes, *, client: Address | None = None
    ) -> bytes | None:
        """As ``query``, in wire form; ``None`` if no reply is sent."""
        if self._is_publish_due:
            self._put_into_force()
        if self._published is not None:
            await asyncio.shield(self._published)
        reply, number = self._running().ask(message, client)
        if number is None or self._pump is None:
            return reply
        return await self._pump.expect(number)

    async def _start(self, core: Core) -> None:
        """Starts the core. A port that the system has chosen as free for UDP may be taken for TCP:
        then it is asked for another one."""
        await self._enter_lifespan()
        tries = _PORT_TRIES if any(it.endswith(":0") for it in self._listen) else 1
        for left in reversed(range(tries)):
            try:
                await self._in_thread(core.start, self._settings(), *self._code())
            except OSError:
                if left == 0:
                    raise
            else:
                self._is_started = True
                self._put_into_force()  # what was added meanwhile
                return

    async def _stop(self, core: Core, pump: Pump) -> None:
        """Stops the core, also while it starts."""
        try:
            await self._in_thread(core.stop)
        finally:
            self._is_started = False
            if self._published is not None and not self._published.done():
                self._published.set_result(None)
            try:
                await pump.drain(self._deadline)
            finally:
                pump.close()
                try:
                    await self._leave_lifespan()
                finally:
                    self._core = self._pump = self._starting = self._stopping = None
                    self._published = None

    async def _enter_lifespan(self) -> None:
        """Enters the lifespan, if there is one, and takes over what it yields."""
        if self._lifespan is None or self._pump is None:
            return
        self._is_entering = True
        context = self._pump.context()
        self._in_lifespan = LifespanTask(self._lifespan, self, context, self._stop_by_itself)
        try:
            self._state_of_lifespan = await self._in_lifespan.enter()
        finally:
            self._is_entering = False
        self._state.update(self._state_of_lifespan)

    async def _leave_lifespan(self) -> None:
        """Leaves the lifespan, if it was entered; ``state`` then has nothing of it any more."""
        left, self._in_lifespan = self._in_lifespan, None
        try:
            if left is not None:
                await left.leave()
        finally:
            for key in self._state_of_lifespan:
                self._state.pop(key, None)
            self._state_of_lifespan = {}

    async def _below(self, query: Query, reply: Reply) -> None:
        """Has the reply be what the core answers without handlers."""
        number = self._running().below(query, reply)
        if number is not None and self._pump is not None:
            reply._take_over(await self._pump.expect(number))

    async def _until_stopped(self, told: asyncio.Event) -> None:
        """Waits until the app is to stop, or the server has."""
        while not told.is_set() and self._core is not None and not self._core.is_finished():
            try:
                await asyncio.wait_for(told.wait(), _LOOK_INTERVAL)
            except asyncio.TimeoutError:
                pass

    async def _in_thread(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Calls what takes long; handlers are called meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)

    def _running(self) -> Core:
        """The core of the running app."""
        if self._core is None:
            raise StateError("the app is not running")
        return self._core

    def _before_start(self) -> None:
        """Refuses what has an effect only before the app starts."""
        if self._core is not None and not self._is_entering:
            raise StateError("the app runs already: this has to be said before it starts")

    def _drop(self, route: str) -> None:
        """Forgets the handler of a route."""
        number = self._routes.pop(route, None)
        if number is not None:
            if self._added.pop(number, None) is None:
                self._removed.append(number)
            else:
                self._forget([number])

    def _publish(self) -> None:
        """Has handlers and middleware put into force, if the app runs: few of them at once, and
        many at the end of this turn."""
        if self._pump is None or not self._is_started or self._is_publish_due:
            return
        if len(self._routes) <= _FEW_ROUTES:
            self._put_into_force()
        else:
            self._is_publish_due = True
            self._pump.loop.call_soon(self._put_into_force)

    def _put_into_force(self) -> None:
        """Tells the core what was added and removed since it was told last."""
        self._is_publish_due = False
        core, pump = self._core, self._pump
        if core is None or pump is None or not self._is_started:
            return
        routes = [(route, number) for number, route in self._added.items()]
        removed, self._removed, self._added = self._removed, [], {}
        guards, self._added_guards = self._added_guards, []
        later = core.change_code(removed, routes, guards, bool(self._middleware))
        if later is None:
            self._forget(removed)
        else:  # queries for what was removed come until then
            self._published = pump.expect(later)
            self._published.add_done_callback(lambda _: self._forget(removed))

    def _forget(self, removed: list[int]) -> None:
        """Forgets handlers, by their numbers, and what answered for them."""
        for number in removed:
            self._handlers.pop(number, None)
            self._answers.pop(number, None)

    def _compose(self) -> None:
        """Puts together what answers for the number of each handler."""
        self._answers.clear()
        for number, handler in self._handlers.items():
            self._answers[number] = self._composed(handler)
        if self._middleware:
            self._answers[None] = self._recovering(
                around(tuple(self._middleware), self._inner(None, False))
            )

    def _composed(self, handler: Called) -> Called:
        """What answers for a handler: middleware, if there is some, around it."""
        if not self._middleware:
            return self._recovering(handler)
        return self._recovering(around(tuple(self._middleware), self._inner(handler)))

    def _recovering(self, answer: Called) -> Called:
        """What answers also where code has raised exceptions, if there is something that does."""
        handlers = self._error_handlers
        return recovering(answer, tuple(handlers)) if handlers else answer

    def _behind_guards(self, number: int | None, guards: Sequence[int]) -> Called:
        """What answers a query that passes guards, for the number of a handler, which may have been
        removed."""
        layers = [*self._middleware]
        for guard in guards:
            layers += self._guards[guard]
        handler = None if number is None else self._handlers.get(number)
        return self._recovering(around(layers, self._inner(handler, number is not None)))

    def _inner(self, handler: Called | None, has_next: bool = True) -> Filling:
        """What is inside of all middleware: a handler, those of wider patterns, and the core."""

        async def fill(query: Query, reply: Reply) -> None:
            if handler is not None:
                await settle(handler(query, reply), reply)
            while has_next and not reply.is_answered:
                behind = self._next_handler(query)
                if behind is None:
                    break
                reply.clear()  # what was added is not the next one's
                await settle(behind(query, reply), reply)
            if not reply.is_answered:
                await self._below(query, reply)

        return fill

    def _next_handler(self, query: Query) -> Called | None:
        """The handler that is next behind the one that a query has come to."""
        if self._core is None:
            return None
        number = self._core.next_handler(query)
        return None if number is None else self._handlers.get(number)

    def _code(self) -> tuple[list[tuple[str, int]], list[tuple[str, int]], bool]:
        """Routes and guards with their numbers, and whether there is middleware for all queries."""
        self._forget(self._removed)
        self._added, self._removed, self._added_guards = {}, [], []
        return list(self._routes.items()), list(self._guard_numbers.items()), bool(self._middleware)

    def _settings(self) -> dict[str, Any]:
        """What the core is started with."""
        return {
            "listen": self._listen,
            "listens_nowhere": self._listens_nowhere,
            "config": self._config,
            "zones": self._zones,
            "texts": list(self._texts.values()),
            "stores": self._stores,
            "forward": self._forward,
            "workers": self._workers,
            "metrics": self._metrics,
            "deadline": self._deadline,
            "waiting_max": self._waiting_max,
            "allow_failed_zones": self._allow_failed_zones,
            "reuse_port": self._reuse_port,
        }


class Router:
    """Names below a suffix, which patterns leave out: ``www``, ``*``, ``:user/TXT``; ``@`` is the
    suffix itself."""

    def __init__(self, app: App, suffix: str) -> None:
        """Names of an app below a suffix."""
        if not isinstance(suffix, str):
            raise PatternTypeError(f"a suffix must be a text such as 'eu.example', not {suffix!r}")
        check_suffix(suffix)  # tells the mistake where it is made
        self._app = app
        self._suffix = suffix

    def __repr__(self) -> str:
        return f"<zonda.Router below {self._suffix!r}>"

    def handle(
        self, pattern: str, types: _RecordType | Iterable[_RecordType] | None = None
    ) -> Callable[[_Handler], _Handler]:
        """As ``App.handle``, below the suffix."""
        return self._app.handle(self._below(pattern), types)

    def add_handler(
        self,
        pattern: str,
        function: Handler,
        types: _RecordType | Iterable[_RecordType] | None = None,
    ) -> None:
        """As ``App.add_handler``, below the suffix."""
        self._app.add_handler(self._below(pattern), function, types)

    def remove_handler(
        self, pattern: str, types: _RecordType | Iterable[_RecordType] | None = None
    ) -> bool:
        """As ``App.remove_handler``, below the suffix."""
        return self._app.remove_handler(self._below(pattern), types)

    @overload
    def middleware(self, function: _Middleware) -> _Middleware: ...

    @overload
    def middleware(self, function: str) -> Callable[[_Middleware], _Middleware]: ...

    def middleware(self, function: Any) -> Any:
        """Has queries for the suffix and all names below it pass a function; with a pattern, those
        for the names of that."""
        if isinstance(function, str):
            return self._app.middleware(self._below(function))
        for pattern in ("@", "*"):
            self._app.middleware(self._below(pattern))(function)
        return function

    @overload
    def on_error(self, kind: type[Exception]) -> Callable[[_ErrorHandler], _ErrorHandler]: ...

    @overload
    def on_error(self, kind: _ErrorHandler) -> _ErrorHandler: ...

    def on_error(self, kind: Any) -> Any:
        """As ``App.on_error``, for queries for the suffix and all names below it: called before the
        functions of routers above this one, and of the app."""
        return self._app._on_error(kind, self._suffix)

    def route(self, suffix: str) -> Router:
        """The names below a suffix that is itself below this one."""
        return Router(self._app, self._below(suffix))

    def _below(self, pattern: str) -> str:
        """A pattern below the suffix."""
        found = re.match(r"((?:\\.|[^\\/])*)(.*)", pattern, re.DOTALL)
        names, types = found.groups() if found else (pattern, "")
        names = self._suffix if names == "@" else f"{names.removesuffix('.')}.{self._suffix}"
        return names + types


def _run(coroutine: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
    """What ``asyncio.Runner`` does, which Python 3.10 lacks."""
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(coroutine)
    finally:
        try:
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _check_no_loop() -> None:
    """Raises ``StateError`` where an event loop runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise StateError(
        "run() makes an event loop, and one runs already, as in a notebook: use"
        " `await app.serve()`, or `async with app`"
    )


def _note(task: asyncio.Future[None]) -> None:
    """Takes note of how a task has ended, which asyncio would complain about if nobody did."""
    if not task.cancelled():
        task.exception()


def _settle(ended: asyncio.Future[None], stopping: asyncio.Task[None]) -> None:
    """Says how a run of an app has ended, once it is stopped."""
    error = None if stopping.cancelled() else stopping.exception()
    if ended.done():
        return
    if error is None:
        ended.set_result(None)
    else:
        ended.set_exception(error)


def _log_failure(task: asyncio.Task[None]) -> None:
    """Logs why an app had to stop that nobody waits for."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("the app did not stop as it should", exc_info=error)


def _check(function: Any, what: str) -> None:
    """Raises ``ConfigTypeError`` for what cannot be called."""
    if not callable(function):
        raise ConfigTypeError(f"{what} must be a function, not {function!r}")


def _check_store(store: Any) -> None:
    """Raises ``ConfigTypeError`` for what is no store."""
    if not isinstance(store, Store):
        for method in ("load", "get", "watch"):
            if not callable(getattr(store, method, None)):
                raise ConfigTypeError(f"a store has load, get and watch: {store!r} has no {method}")


def _plain(name: str) -> str:
    """What all spellings of a zone's name have in common: by this its text is kept."""
    return name.lower().removesuffix(".")


def _route(pattern: str, types: _RecordType | Iterable[_RecordType] | None) -> str:
    """A pattern with the types it is for, the same for all that mean the same. What is none raises
    ``PatternError``."""
    if not isinstance(pattern, str):
        example = '@app.handle("example.org")'
        raise PatternTypeError(f"a pattern must be a text, as in {example}, not {pattern!r}")
    if types is None:
        return canonical_pattern(pattern)
    several = types if isinstance(types, Iterable) and not isinstance(types, str) else [types]
    words = [*several]
    for word in words:
        if not isinstance(word, str):
            wanted = 'texts such as "A", one or a list of them'
            raise PatternTypeError(f"types must be {wanted}, not {word!r}")
    return canonical_pattern(f"{pattern}/{'|'.join(words)}")
