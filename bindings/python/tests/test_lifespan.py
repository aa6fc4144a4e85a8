"""What a program enters before its app listens, and leaves behind the last reply."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading

import dns.message
import dns.query
import pytest
from test_app import LOOPS, SlowStore, free_address, is_free, run_in

import zonda


def app_with(lifespan, listen="127.0.0.1:0"):
    """An app that has a lifespan."""
    return zonda.App(listen, workers=1, lifespan=lifespan)


@LOOPS
def test_it_is_entered_before_the_app_listens_and_left_behind_the_last_reply(loop):
    address, told = free_address(), []

    @contextlib.asynccontextmanager
    async def lifespan(app):
        told.append(("entered", is_free(address)))
        yield {"answer": "192.0.2.1"}
        told.append(("left", is_free(address)))

    app = app_with(lifespan, "{}:{}".format(*address))

    @app.handle("slow.example")
    async def slow(query, reply):
        await asyncio.sleep(0.3)
        told.append(("answered", app.state["answer"]))
        return zonda.A(app.state["answer"])

    async def main():
        assert app.state == {}
        async with app:
            assert app.state == {"answer": "192.0.2.1"}
            query = dns.message.make_query("slow.example", "A")
            ask = asyncio.to_thread(dns.query.udp, query, address[0], timeout=3, port=address[1])
            asked = asyncio.create_task(ask)
            await asyncio.sleep(0.1)
        assert str((await asked).answer[0][0]) == "192.0.2.1"
        assert app.state == {}

    run_in(loop, main())
    assert told == [("entered", True), ("answered", "192.0.2.1"), ("left", True)]


@LOOPS
def test_both_halves_run_in_one_task_so_that_timeouts_and_task_groups_work(loop):
    tasks = []

    async def lifespan(app):  # one that is not decorated
        tasks.append(asyncio.current_task())
        async with contextlib.AsyncExitStack() as stack:
            if hasattr(asyncio, "TaskGroup"):
                group = await stack.enter_async_context(asyncio.TaskGroup())
                ticker = group.create_task(asyncio.sleep(60))
                stack.callback(ticker.cancel)
            yield
        tasks.append(asyncio.current_task())

    app = app_with(lifespan)

    async def main():
        async with app:
            assert app.state == {}
        assert tasks[0] is tasks[1] is not asyncio.current_task()

    run_in(loop, main())


@LOOPS
@pytest.mark.parametrize("way", ["raises", "yields no mapping", "is no context manager"])
def test_one_that_cannot_be_entered_makes_the_start_fail_and_nothing_listen(loop, way):
    address = free_address()
    is_broken = True

    @contextlib.asynccontextmanager
    async def lifespan(app):
        if is_broken and way == "raises":
            raise KeyError("no database")
        yield ["a"] if is_broken else {"a": 1}

    def made(app):
        return 42 if is_broken and way == "is no context manager" else lifespan(app)

    app = app_with(made, "{}:{}".format(*address))
    error, words = (KeyError, "no database") if way == "raises" else (TypeError, "lifespan")

    async def main():
        nonlocal is_broken
        with pytest.raises(error, match=words):
            await app.start()
        assert is_free(address) and app.state == {}
        with pytest.raises(zonda.StateError):
            await app.query("a.example")
        is_broken = False
        async with app:
            assert app.state == {"a": 1} and not is_free(address)

    run_in(loop, main())


@LOOPS
def test_what_it_raises_when_it_is_left_is_raised_by_stop_once_the_app_has_stopped(loop):
    address = free_address()

    @contextlib.asynccontextmanager
    async def lifespan(app):
        yield
        raise KeyError("the database is away")

    app = app_with(lifespan, "{}:{}".format(*address))

    async def main():
        for _ in range(2):  # and it may start again
            await app.start()
            closed = asyncio.create_task(app.closed())
            await asyncio.sleep(0)
            with pytest.raises(KeyError, match="the database is away"):
                await app.stop()
            with pytest.raises(KeyError, match="the database is away"):
                await closed
            assert is_free(address)

    run_in(loop, main())


@LOOPS
def test_a_start_that_is_cancelled_while_it_is_entered_cancels_it(loop):
    address, told = free_address(), []

    @contextlib.asynccontextmanager
    async def lifespan(app):
        told.append("enters")
        try:
            await asyncio.sleep(0 if told.count("enters") > 2 else 60)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise
        yield

    app = app_with(lifespan, "{}:{}".format(*address))

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(app.start(), 0.05)
        assert told == ["enters", "cancelled"] and is_free(address)
        starting = asyncio.create_task(app.start())
        await asyncio.sleep(0.05)
        await app.stop()
        with pytest.raises(zonda.StateError, match="stopped before it had started"):
            await starting
        assert told == ["enters", "cancelled"] * 2 and is_free(address)
        async with app:
            assert not is_free(address)

    run_in(loop, main())


@LOOPS
def test_a_start_that_is_cancelled_or_fails_behind_it_leaves_it(loop):
    address, store, told = free_address(), SlowStore(), []

    @contextlib.asynccontextmanager
    async def lifespan(app):
        told.append("entered")
        yield
        told.append("left")

    app = app_with(lifespan, "{}:{}".format(*address))
    app.store("example.org", store)
    threading.Timer(0.5, store.may_go_on.set).start()

    async def main():
        starting = asyncio.create_task(app.start())
        while not store.is_asked.is_set():
            await asyncio.sleep(0.01)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert told == ["entered", "left"]
        with socket.socket() as other:
            other.bind(address)
            other.listen()
            with pytest.raises(OSError):
                await app.start()
        assert told == ["entered", "left"] * 2

    run_in(loop, main())


@LOOPS
def test_it_may_add_handlers_and_zones_and_stop_the_app(loop):
    @contextlib.asynccontextmanager
    async def lifespan(app):
        app.add_handler("a.example", lambda query, reply: zonda.A("192.0.2.1"))
        app.zone("example.org", text="@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns.example.net.\n")

        async def stops():
            await may_stop.wait()
            await app.stop()

        task = asyncio.create_task(stops())
        yield
        await app.stop()
        await task

    async def main():
        nonlocal may_stop
        may_stop = asyncio.Event()
        app = app_with(lifespan)
        await app.start()
        assert (await app.query("a.example")).of(zonda.A)[0].ip == "192.0.2.1"
        assert (await app.query("example.org", "SOA")).answers
        with pytest.raises(zonda.StateError):
            app.zone("late.example", text="")
        may_stop.set()
        await asyncio.wait_for(app.closed(), 10)

    may_stop = None
    run_in(loop, main())


@pytest.mark.skipif(not hasattr(asyncio, "TaskGroup"), reason="task groups are new in 3.11")
@LOOPS
def test_one_that_ends_by_itself_stops_the_app_which_tells_why(loop):
    address = free_address()

    async def fails():
        await asyncio.sleep(0.05)
        raise KeyError("the connection is lost")

    @contextlib.asynccontextmanager
    async def lifespan(app):
        async with asyncio.TaskGroup() as group:
            group.create_task(fails())
            yield {"a": 1}

    app = app_with(lifespan, "{}:{}".format(*address))

    async def main():
        await app.start()
        with pytest.raises(ExceptionGroup) as told:
            await asyncio.wait_for(app.closed(), 10)
        assert "the connection is lost" in repr(told.value.exceptions)
        assert is_free(address) and app.state == {}
        with pytest.raises(ExceptionGroup):
            await asyncio.wait_for(app.serve(), 10)

    run_in(loop, main())


def test_one_that_is_no_function_is_told_when_the_app_is_made():
    with pytest.raises(zonda.ConfigError, match="lifespan must be a function"):
        zonda.App(lifespan=42)


def test_a_signal_ends_a_program_whose_lifespan_is_still_being_entered():
    left = []

    @contextlib.asynccontextmanager
    async def lifespan(app):
        asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        finally:
            left.append("left")
        yield

    asyncio.run(asyncio.wait_for(app_with(lifespan).serve(), 10))
    assert left == ["left"]


def test_an_app_stops_although_its_lifespan_goes_on_when_it_is_cancelled():
    @contextlib.asynccontextmanager
    async def lifespan(app):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        yield

    async def scenario():
        app = app_with(lifespan)
        starting = asyncio.ensure_future(app.start())
        await asyncio.sleep(0.1)
        await asyncio.wait_for(app.stop(), 10)
        with pytest.raises(zonda.StateError):
            await starting

    asyncio.run(scenario())
