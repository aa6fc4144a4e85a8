"""How an app starts, is asked, and stops."""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

import dns.message
import dns.query
import pytest
import uvloop
from conftest import environment, python
from databases import free_port

import zonda


def test_an_app_that_listens_nowhere_is_asked_without_sockets():
    app = zonda.App(listen=[])

    @app.handle("a.example", ["A"])
    def a(query, reply):
        reply.answer(zonda.A("192.0.2.1"))

    async def scenario():
        async with app:
            assert list(app.addresses) == []
            expected = zonda.A("192.0.2.1", owner="a.example")
            assert (await app.query("a.example")).answers[0] == expected

    asyncio.run(scenario())


def test_an_app_is_asked_without_sockets(app, serve):
    @app.handle("whoami.example")
    async def whoami(query, reply):
        await asyncio.sleep(0)
        reply.answer(zonda.TXT(query.client, query.transport, str(query.dnssec_ok)))

    async def scenario(client):
        reply = await app.query("whoami.example", "TXT", client="192.0.2.7", dnssec_ok=True)
        assert (reply.rcode, reply.aa) == ("NOERROR", True)
        assert reply.answers == (
            zonda.TXT("192.0.2.7", "tcp", "True", owner="whoami.example"),
        )
        with pytest.raises(RuntimeError, match="sent"):
            reply.nxdomain()
        assert (await app.query("nobody.example")).rcode == "REFUSED"
        assert (await app.query("whoami.example", 16)).answers[0].rtype == "TXT"
        query = dns.message.make_query("whoami.example", "TXT")
        answer = dns.message.from_wire(await app.query_message(query.to_wire()))
        assert answer.id == query.id and len(answer.answer) == 1

    serve(app, scenario)


def test_a_configuration_file_is_taken_over_and_extended(tmp_path, serve, zone_file):
    file = tmp_path / "zonda.toml"
    file.write_text(
        'version = 1\n'
        f'[[zone]]\nname = "example.org"\nfile = "{zone_file}"\n'
    )
    app = zonda.App("127.0.0.1:0", config=file)
    app.add_handler("b.example.org", lambda query, reply: zonda.A("192.0.2.2"))

    async def scenario(client):
        assert (await client.told("a.example.org")).endswith("192.0.2.9")
        assert (await client.told("b.example.org")).endswith("192.0.2.2")
        zone_file.write_text(zone_file.read_text().replace("192.0.2.9", "192.0.2.10"))
        await app.reload()
        assert (await client.told("a.example.org")).endswith("192.0.2.10")
        file.write_text("version = 1\nbogus = 1\n")
        with pytest.raises(ValueError, match="bogus"):
            await app.reload()

    serve(app, scenario)


def test_a_zone_is_given_as_text(app, serve):
    app.zone("example.org", text="@ 60 SOA ns x 1 2 3 4 5\n@ 60 NS ns\na 60 A 192.0.2.1\n")
    with pytest.raises(TypeError, match="either"):
        app.zone("example.net")

    async def scenario(client):
        assert await client.told("a.example.org") == "NOERROR | a.example.org. 60 A 192.0.2.1"

    serve(app, scenario)


def test_mistakes_are_told_at_the_start(tmp_path, app):
    async def start(app):
        async with app:
            pass

    with pytest.raises(ValueError, match="nowhere"):
        asyncio.run(start(zonda.App(listen="nowhere")))
    with pytest.raises(ValueError, match="none.toml"):
        asyncio.run(start(zonda.App(config=tmp_path / "none.toml")))
    with pytest.raises(ValueError, match="metrics"):
        asyncio.run(start(zonda.App(listen="127.0.0.1:0", metrics="here")))

    async def twice():
        async with app:
            address, port = app.addresses[0]
            with pytest.raises(RuntimeError, match="runs already"):
                await app.start()
            with pytest.raises(RuntimeError, match="before it starts"):
                app.zone("example.org", "none")
            other = zonda.App(listen=f"{address}:{port}")
            with pytest.raises(OSError, match=str(port)):
                await other.start()
            with pytest.raises(RuntimeError, match="not running"):
                await other.query("a.example")

    asyncio.run(twice())


def zone_text(last):
    """A zone with one address."""
    return f"@ 60 SOA ns x 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.{last}\n"


def test_a_start_tells_all_zones_that_cannot_be_loaded_with_all_other_mistakes(tmp_path):
    def refused(**options):
        app = zonda.App(listen=[], **options)
        app.zone("missing.example", tmp_path / "typo.zone")
        app.zone("text.example", text="@ SOA x\nb 60 A 192.0.2\n")
        app.zone("good.example", text=zone_text(1))
        with pytest.raises(ValueError) as raised:
            asyncio.run(app.start())
        return str(raised.value).splitlines()

    missing, *text = refused()
    assert "typo.zone" in missing
    places = [line.split(": ")[0] for line in text]
    assert places == ["text.example. (of the program):1:8", "text.example. (of the program):2:8"]
    assert refused(metrics="here") == ["metrics: invalid socket address syntax", missing, *text]


def test_an_app_that_allows_it_starts_without_zones_that_fail_and_tells_which_they_are(tmp_path):
    app = zonda.App(listen=[], allow_failed_zones=True)
    app.zone("missing.example", tmp_path / "typo.zone")
    app.zone("good.example", text=zone_text(1))

    async def scenario():
        async with app:
            [failed] = app.failed_zones
            assert failed[:2] == ("missing.example.", False)
            assert "typo.zone" in failed.error
            assert (await app.query("ns.missing.example")).rcode == "SERVFAIL"
            assert (await app.query("ns.good.example")).rcode == "NOERROR"

    asyncio.run(scenario())


def test_a_reload_tells_zones_that_cannot_be_loaded_and_their_last_version_is_served(zone_file):
    app = zonda.App(listen=[])
    app.zone("example.org", zone_file)

    async def scenario():
        async with app:
            good = zone_file.read_text()
            zone_file.write_text(good + "b 60 A 192.0.2\n")
            with pytest.raises(ValueError, match=r"example\.org\.zone:6:"):
                await app.reload()
            assert [(zone.name, zone.is_served) for zone in app.failed_zones] == [
                ("example.org.", True)
            ]
            assert (await app.query("a.example.org")).answers[0].ip == "192.0.2.9"
            await app.set_zone_text("text.example", zone_text(2))
            assert (await app.query("ns.text.example")).answers[0].ip == "192.0.2.2"
            zone_file.write_text(good + "b 60 A 192.0.2.7\n")
            await app.reload()
            assert app.failed_zones == []
            assert (await app.query("b.example.org")).answers[0].ip == "192.0.2.7"

    asyncio.run(scenario())


def test_the_log_of_the_core_goes_to_logging(tmp_path, caplog, serve):
    app = zonda.App(listen=["127.0.0.1:0"], workers=1, allow_failed_zones=True)
    app.zone("example.org", tmp_path / "none.zone")

    async def scenario(client):
        assert await client.told("a.example.org") == "SERVFAIL"

    with caplog.at_level(logging.INFO, logger="zonda"):
        serve(app, scenario)
    assert any("listening address=127.0.0.1" in record.message for record in caplog.records)
    errors = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert any("none.zone" in record.message for record in errors)


def metrics(caplog):
    """The page of metrics of the app that runs."""
    lines = [record.getMessage() for record in caplog.records]
    (url,) = [line.split('"')[1] for line in lines if line.startswith("metrics url=")]
    with urllib.request.urlopen(url) as page:
        return page.read().decode()


def counted(text, name):
    """The values of a metric, by their labels, but those that are 0."""
    found = re.findall(rf"^{name}{{(.*)}} (\S+)$", text, re.MULTILINE)
    return {labels: int(value) for labels, value in found if value != "0"}


def test_an_address_of_metrics_takes_no_orders_and_is_no_public_one_without_a_token(serve, caplog):
    async def start(app):
        async with app:
            pass

    with pytest.raises(Exception, match="others can reach 0.0.0.0"):
        asyncio.run(start(zonda.App(listen=[], metrics="0.0.0.0:0")))
    app = zonda.App(listen=["127.0.0.1:0"], workers=1, metrics="127.0.0.1:0")

    def status(path, method):
        lines = [record.getMessage() for record in caplog.records]
        (url,) = [line.split('"')[1] for line in lines if line.startswith("metrics url=")]
        request = urllib.request.Request(url.removesuffix("/metrics") + path, method=method)
        try:
            with urllib.request.urlopen(request) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code

    async def scenario(client):
        for path, method, expected in [
            ("/health", "GET", 200),
            ("/v1/status", "GET", 404),
            ("/v1/reload", "POST", 404),
            ("/v1/stop", "POST", 404),
        ]:
            assert await asyncio.to_thread(status, path, method) == expected, path

    with caplog.at_level(logging.INFO):
        serve(app, scenario)


def test_metrics_count_what_handlers_answer(serve, caplog):
    app = zonda.App(listen=["127.0.0.1:0"], workers=1, metrics="127.0.0.1:0")
    app.add_handler("*", lambda query, reply: zonda.A("192.0.2.1"))

    async def scenario(client):
        await client.told("a.example")
        text = await asyncio.to_thread(metrics, caplog)
        assert counted(text, "zonda_queries_total") == {'reason="handled"': 1}

    with caplog.at_level(logging.INFO, logger="zonda"):
        serve(app, scenario)


def test_metrics_count_a_query_once_that_middleware_asks_the_core_about(serve, caplog, zone_file):
    app = zonda.App(listen=["127.0.0.1:0"], workers=1, metrics="127.0.0.1:0")
    app.zone("example.org", zone_file)
    app.add_handler("handled.example", lambda query, reply: zonda.A("192.0.2.1"))

    @app.middleware
    async def looks(query, reply, call_next):
        await call_next()

    async def scenario(client):
        for name in ("a.example.org", "none.example.org", "handled.example", "nobody.example"):
            await client.told(name)
        text = await asyncio.to_thread(metrics, caplog)
        assert sum(counted(text, "zonda_queries_total").values()) == 4
        assert sum(counted(text, "zonda_replies_total").values()) == 4
        assert counted(text, "zonda_zone_queries_total") == {'zone="example.org."': 2}

    with caplog.at_level(logging.INFO, logger="zonda"):
        serve(app, scenario)


def test_an_app_starts_again_after_it_was_stopped(app):
    app.add_handler("a.example", lambda query, reply: zonda.A("192.0.2.1"))

    async def main():
        for _ in range(3):
            async with app:
                assert (await app.query("a.example")).answers

    asyncio.run(main())


def test_stopping_waits_for_code_that_has_begun(app):
    @app.handle("slow.example")
    async def slow(query, reply):
        await asyncio.sleep(0.3)
        reply.answer(zonda.A("192.0.2.1"))

    async def main():
        await app.start()
        address, port = app.addresses[0]
        query = dns.message.make_query("slow.example", "A")
        asked = asyncio.create_task(
            asyncio.to_thread(dns.query.udp, query, address, timeout=3, port=port)
        )
        await asyncio.sleep(0.1)
        await app.stop()
        assert str((await asked).answer[0][0]) == "192.0.2.1"

    asyncio.run(main())


class SlowStore:
    """A store that cannot be read until it may: an app that starts waits for it."""

    def __init__(self):
        self.is_asked = threading.Event()
        self.may_go_on = threading.Event()

    def load(self, zone):
        self.is_asked.set()
        self.may_go_on.wait(10)
        return []

    def get(self, owner):
        return []

    def watch(self, zone, changed):
        pass


def free_address():
    """An address that nothing listens on, and that no client gets by chance."""
    return ("127.0.0.1", free_port())


def is_free(address):
    """Whether nothing listens on an address."""
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tcp.bind(address)
            udp.bind(address)
        except OSError:
            return False
        return True


def run_in(loop, main):
    """Runs a coroutine in a kind of loop."""
    return uvloop.run(main) if loop == "uvloop" else asyncio.run(main)


LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


@LOOPS
@pytest.mark.parametrize("way", ["at once", "wait_for", "while it waits for a store"])
def test_a_cancelled_start_leaves_nothing_behind(loop, way, caplog):
    address, store = free_address(), SlowStore()
    app = zonda.App("{}:{}".format(*address), workers=1)
    app.add_handler("a.example", lambda query, reply: zonda.A("192.0.2.1"))
    if way == "at once":
        store.may_go_on.set()
    else:
        app.store("example.org", store)
        threading.Timer(1, store.may_go_on.set).start()

    async def main():
        if way == "wait_for":
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(app.start(), 0.05)
        else:
            starting = asyncio.create_task(app.start())
            await asyncio.sleep(0)
            while way != "at once" and not store.is_asked.is_set():
                await asyncio.sleep(0.01)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
        assert is_free(address)
        with pytest.raises(RuntimeError, match="not running"):
            await app.query("a.example")
        async with app:
            assert (await app.query("a.example")).answers[0].ip == "192.0.2.1"
            assert not is_free(address)
        assert is_free(address)

    run_in(loop, main())
    told = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert told == []


@LOOPS
def test_a_start_that_is_cancelled_twice_and_a_loop_that_ends_leave_nothing_behind(loop):
    address, store = free_address(), SlowStore()
    app = zonda.App("{}:{}".format(*address), workers=1)
    app.store("example.org", store)
    threading.Timer(0.5, store.may_go_on.set).start()

    async def main():
        starting = asyncio.create_task(app.start())
        while not store.is_asked.is_set():
            await asyncio.sleep(0.01)
        starting.cancel()
        await asyncio.sleep(0.01)
        starting.cancel()
        await asyncio.wait([starting])
        assert starting.cancelled()

    run_in(loop, main())
    assert is_free(address), "the loop's threads end with it"


@LOOPS
def test_a_stop_while_the_app_starts_ends_the_start(loop):
    address, store = free_address(), SlowStore()
    app = zonda.App("{}:{}".format(*address), workers=1)
    app.store("example.org", store)
    threading.Timer(0.5, store.may_go_on.set).start()

    async def main():
        starting = asyncio.create_task(app.start())
        while not store.is_asked.is_set():
            await asyncio.sleep(0.01)
        await asyncio.gather(app.stop(), app.stop())
        assert is_free(address)
        with pytest.raises(RuntimeError, match="stopped before it had started"):
            await starting
        await app.start()
        assert not is_free(address)
        await app.stop()
        await app.stop()
        assert is_free(address)

    run_in(loop, main())


@LOOPS
def test_a_stop_that_is_waited_for_no_longer_goes_on(loop):
    address = free_address()
    app = zonda.App("{}:{}".format(*address), workers=1)

    @app.handle("slow.example")
    async def slow(query, reply):
        await asyncio.sleep(0.5)

    async def main():
        await app.start()
        asked = asyncio.create_task(app.query("slow.example"))
        await asyncio.sleep(0.05)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(app.stop(), 0.05)
        assert (await asked).rcode == "NOERROR"
        await app.stop()
        assert is_free(address)

    run_in(loop, main())


@LOOPS
@pytest.mark.parametrize("way", ["itself", "in a task", "wait_for"])
def test_a_handler_that_stops_its_app_answers_first(loop, way):
    address = free_address()
    app = zonda.App("{}:{}".format(*address), workers=1)

    @app.handle("stop.example")
    async def stop(query, reply):
        if way == "itself":
            await app.stop()
        elif way == "in a task":
            await asyncio.create_task(app.stop())
        else:
            await asyncio.wait_for(app.stop(), 3)
        return zonda.TXT("it stops")

    async def main():
        await app.start()
        began = time.monotonic()
        query = dns.message.make_query("stop.example", "TXT")
        reply = await asyncio.to_thread(
            dns.query.udp, query, address[0], timeout=10, port=address[1]
        )
        assert str(reply.answer[0][0]) == '"it stops"'
        await app.stop()
        assert is_free(address)
        assert time.monotonic() - began < 4, "the deadline is 5"

    run_in(loop, main())


def is_up(app):
    """Whether it answers."""
    try:
        return bool(app.addresses)
    except RuntimeError:
        return False


def test_an_app_runs_in_a_thread_and_two_run_in_one_process():
    apps, threads = [], []
    for last in (1, 2):
        app = zonda.App(listen=["127.0.0.1:0"], workers=1)
        record = zonda.A(f"192.0.2.{last}")
        app.add_handler("a.example", lambda query, reply, record=record: record)
        loops = []

        def serve(app=app, loops=loops):
            async def main():
                loops.append(asyncio.get_running_loop())
                await app.serve()

            asyncio.run(main())

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        apps.append((app, loops))
        threads.append(thread)
    for last, (app, loops) in enumerate(apps, 1):
        while not is_up(app):
            time.sleep(0.01)
        asked = asyncio.run_coroutine_threadsafe(app.query("a.example"), loops[0])
        assert asked.result(10).answers[0].ip == f"192.0.2.{last}"
    for thread, (app, loops) in zip(threads, apps):
        asyncio.run_coroutine_threadsafe(app.stop(), loops[0]).result(10)
        thread.join(10)
        assert not thread.is_alive(), "it notices that it was stopped"


PROGRAM = """
import asyncio, logging, sys, zonda
loop = sys.argv[1]
if loop.endswith("3.10"):
    sys.version_info = (3, 10)
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
# A loop in its development mode warns of turns that a busy machine makes long.
logging.getLogger("asyncio").setLevel(logging.ERROR)
app = zonda.App(listen=["127.0.0.1:0"], workers=1)

@app.handle("a.example")
async def a(query, reply):
    await asyncio.sleep(0.01)
    reply.answer(zonda.A("192.0.2.1"))
    tasks.append(asyncio.create_task(goes_on()))

async def goes_on():
    try:
        await asyncio.Event().wait()
    finally:
        print("cancelled")

tasks = []
if loop.startswith("uvloop"):
    import uvloop
    app.run(loop_factory=uvloop.new_event_loop)
else:
    app.run()
print("stopped")
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "uvloop as in 3.10"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_stop_a_program(loop, number):
    with subprocess.Popen(
        [*python(), "-c", PROGRAM, loop], stdout=subprocess.PIPE, text=True, env=environment()
    ) as child:
        try:
            for line in child.stdout:
                if found := re.match(r'listening address="?([\d.]+):(\d+)', line):
                    address, port = found.groups()
                    break
            query = dns.message.make_query("a.example", "A")
            reply = dns.query.udp(query, address, timeout=5, port=int(port))
            assert str(reply.answer[0][0]) == "192.0.2.1"
            child.send_signal(number)
            rest, _ = child.communicate(timeout=15)
            assert rest.endswith("cancelled\nstopped\n") and child.returncode == 0
        finally:
            child.kill()


def test_a_handler_among_ten_thousand_is_added_in_no_time_and_in_force_when_asked():
    app = zonda.App(listen=[], workers=1)

    def answer(address):
        return lambda query, reply: zonda.A(address)

    for number in range(10_000):
        app.add_handler(f"n{number}.example", answer("192.0.2.1"))

    async def scenario():
        async with app:
            seconds = []
            for number in range(41):
                start = time.perf_counter()
                app.add_handler(f"live{number}.example", answer("192.0.2.2"))
                await asyncio.sleep(0)
                seconds.append(time.perf_counter() - start)
            median = sorted(seconds)[20]
            assert median < 0.002, f"{median} s: with all routes at each call, it is 0.07"

            async def ip(name):
                return (await app.query(name)).of(zonda.A)[0].ip

            assert [await ip(f"{it}.example") for it in ("live0", "live40")] == ["192.0.2.2"] * 2
            app.add_handler("live1.example", answer("192.0.2.3"))
            app.remove_handler("n9999.example")
            assert await ip("live1.example") == "192.0.2.3"
            assert (await app.query("n9999.example")).rcode == "REFUSED"
            app.middleware(lambda query, reply, call_next: reply.nxdomain())
            assert (await app.query("live1.example")).rcode == "NXDOMAIN"

    asyncio.run(scenario())


def test_exceptions_have_codes_and_none_has_the_words_of_another_program(app, serve):
    async def starts(*arguments, **options):
        async with zonda.App(*arguments, **options):
            pass

    async def scenario(client):
        address, port = client.app.addresses[0]
        with pytest.raises(OSError) as in_use:
            await starts(f"{address}:{port}")
        assert in_use.value.errno == errno.EADDRINUSE
        with pytest.raises(zonda.ConfigError, match=r"^listen: (?!.*--)") as wrong:
            await starts("5300")
        assert wrong.value.code == "ZONDA_CONFIG" and isinstance(wrong.value, ValueError)
        missing = zonda.App(listen=[])
        missing.zone("example.org", "no.zone")
        with pytest.raises(zonda.ZoneError) as zone:
            await missing.start()
        assert zone.value.code == "ZONDA_ZONE"
        with pytest.raises(zonda.PatternError) as pattern:
            client.app.add_handler("a..b", lambda query, reply: None)
        assert pattern.value.code == "ZONDA_PATTERN"
        with pytest.raises(zonda.StateError) as state:
            client.app.forward("192.0.2.1")
        assert (state.value.code, isinstance(state.value, RuntimeError)) == ("ZONDA_STATE", True)
        with pytest.raises(zonda.StateError):
            await zonda.App(listen=[]).query("a.example")
        with pytest.raises(zonda.ZoneError):
            await client.app.set_zone_text("example.org", "wrong")
        for wrong_use in (
            lambda: client.app.add_handler("a.example", None),
            lambda: client.app.middleware(None),
            lambda: client.app.handle(lambda query, reply: None),
        ):
            with pytest.raises(TypeError, match="must be"):
                wrong_use()

    serve(app, scenario)


def test_a_query_tells_its_pattern_which_the_log_of_a_failure_has(app, serve, caplog):
    patterns = []

    @app.handle(":User.example", ["TXT", "A"])
    def fails(query, reply):
        patterns.append(query.pattern)
        raise LookupError("no such user")

    async def scenario(client):
        assert (await client.app.query("ann.example")).rcode == "SERVFAIL"

    serve(app, scenario)
    assert patterns == [":User.example/A|TXT"]
    told = "the code that answers ann.example. A, the handler of :User.example/A|TXT,"
    assert told in caplog.text


def test_calling_what_is_behind_a_middleware_twice_is_an_error(app, serve, caplog):
    calls = []

    @app.middleware
    async def twice(query, reply, call_next):
        await call_next()
        await call_next()

    @app.handle("a.example")
    def handler(query, reply):
        calls.append(query.name)
        return zonda.A("192.0.2.1")

    async def scenario(client):
        assert (await client.app.query("a.example")).rcode == "SERVFAIL"

    serve(app, scenario)
    assert calls == ["a.example."] and "call_next() was called twice" in caplog.text


class NoSuchUser(Exception):
    """An exception of a program."""


def test_what_answers_for_errors_answers_exceptions_of_its_class(app, serve, caplog):
    def raises(error):
        def handler(query, reply):
            reply.answer(zonda.A("192.0.2.1"))  # is not sent
            raise error

        return handler

    async def raises_late(query, reply):
        await asyncio.sleep(0.001)
        raise NoSuchUser("late")

    async def guard(query, reply, call_next):
        raise NoSuchUser("guarded")

    app.add_handler("sync.example", raises(NoSuchUser("sync")))
    app.add_handler("async.example", raises_late)
    app.add_handler("key.example", raises(KeyError("key")))
    app.add_handler("other.example", raises(OSError("other")))
    app.add_handler("left.example", raises(ArithmeticError("left")))
    app.add_handler("wrong.example", lambda query, reply: 5)
    app.add_handler("good.example", lambda query, reply: zonda.A("192.0.2.5"))
    app.middleware("guarded.example")(guard)

    @app.on_error(NoSuchUser)
    def no_such_user(error, query, reply):
        return zonda.TXT(f"{error} {query.name}", ttl=5)

    @app.on_error(KeyError)
    async def fails(error, query, reply):
        raise RuntimeError("another mistake")

    @app.on_error
    async def any_other(error, query, reply):
        await asyncio.sleep(0.001)
        if not isinstance(error, ArithmeticError):
            reply.refused()

    async def scenario(client):
        for word in ("sync", "guarded"):
            name = f"{word}.example"
            expected = f'NOERROR | {name}. 5 TXT "{word} {name}."'
            assert await client.told(name, "TXT") == expected
        assert "late async.example." in await client.told("async.example", "TXT")
        for word in ("key", "other", "wrong"):
            assert await client.told(f"{word}.example") == "REFUSED"
        assert await client.told("left.example") == "SERVFAIL"
        assert await client.told("good.example") == "NOERROR | good.example. 300 A 192.0.2.5"
        app.add_handler("late.example", raises(NoSuchUser("late")))
        assert "late late.example." in await client.told("late.example", "TXT")

    serve(app, scenario)
    assert "another mistake" in caplog.text
    assert "ArithmeticError: left" in caplog.text
    assert "NoSuchUser" not in caplog.text  # it is answered
    for wrong in (5, None, "x"):
        with pytest.raises(TypeError, match="must be a function"):
            app.on_error(wrong)
    for wrong in (int, BaseException, KeyboardInterrupt):
        with pytest.raises(TypeError, match="a subclass of Exception"):
            app.on_error(wrong)


def test_zones_and_upstreams_come_change_and_go_while_the_app_runs(app, serve, tmp_path):
    def file(name, last):
        path = tmp_path / name
        path.write_text(
            f"@ 300 SOA ns hostmaster 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.{last}\n"
        )
        return path

    def sets(last):
        return [
            ("store.example", "NS", 60, ["ns.store.example"]),
            ("ns.store.example", "A", 60, [f"192.0.2.{last}"]),
        ]

    class Own:
        def load(self, zone):
            return sets(5)

        get = load

        def watch(self, zone, changed):
            pass

    async def address(name):
        reply = await app.query(name)
        return reply.of(zonda.A)[0].ip if reply.answers else reply.rcode

    async def scenario(client):
        await app.set_zone_file("file.example", file("one.zone", 2))
        assert await address("ns.file.example") == "192.0.2.2"
        await app.set_zone_file("FILE.example.", str(file("two.zone", 3)))
        assert await address("ns.file.example") == "192.0.2.3"
        with pytest.raises(zonda.ZoneError, match=r"missing\.zone"):
            await app.set_zone_file("file.example", tmp_path / "missing.zone")
        assert await address("ns.file.example") == "192.0.2.3"

        store = zonda.MemoryStore()
        store.set_many(sets(4))
        await app.set_zone_store("store.example", store)
        assert await address("ns.store.example") == "192.0.2.4"
        await app.set_zone_store("store.example", Own())
        assert await address("ns.store.example") == "192.0.2.5"
        with pytest.raises(zonda.ZoneError, match="already served from"):
            await app.set_zone_store("file.example", store)
        with pytest.raises(TypeError):
            await app.set_zone_store("own.example", object())

        upstream = zonda.App("127.0.0.1:0", workers=1)
        upstream.add_handler("*", lambda query, reply: zonda.A("192.0.2.80", ttl=0))
        async with upstream:
            host, port = upstream.addresses[0]
            assert await address("a.example") == "REFUSED"
            await app.set_forwards(f"{host}:{port}")
            assert await address("a.example") == "192.0.2.80"
            with pytest.raises(zonda.ConfigError):
                await app.set_forwards("nowhere")
            await app.set_forwards()
            assert await address("b.example") == "REFUSED"

        for name in ("file.example", "store.example"):
            assert await app.remove_zone(name)
            assert not await app.remove_zone(name)
            assert await address(f"ns.{name}") == "REFUSED"

    serve(app, scenario)
    for change in (app.set_forwards("192.0.2.1"), app.remove_zone("a.example")):
        with pytest.raises(zonda.StateError):
            asyncio.run(change)


def test_an_app_that_starts_again_has_what_was_changed_while_it_ran(tmp_path):
    app = zonda.App(listen=[], workers=1)
    path = tmp_path / "one.zone"
    path.write_text("@ 300 SOA ns hostmaster 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.1\n")

    async def scenario():
        async with app:
            await app.set_zone_file("a.example", path)
            await app.set_zone_file("b.example", path)
            await app.remove_zone("b.example")
        async with app:
            assert (await app.query("ns.a.example")).rcode == "NOERROR"
            assert (await app.query("ns.b.example")).rcode == "REFUSED"

    asyncio.run(scenario())


def test_several_processes_share_an_address(tmp_path):
    first = zonda.App("127.0.0.1:0", workers=1, reuse_port=True)

    async def scenario():
        async with first:
            host, port = first.addresses[0]
            second = zonda.App(f"{host}:{port}", workers=1, reuse_port=True)
            async with second:
                assert second.addresses == first.addresses
            with pytest.raises(OSError):
                await zonda.App(f"{host}:{port}", workers=1).start()

    asyncio.run(scenario())


def test_closed_comes_back_when_the_app_has_stopped(app):
    async def scenario():
        await app.start()
        closed = asyncio.create_task(app.closed())
        await asyncio.sleep(0)
        assert not closed.done()
        await app.stop()
        await asyncio.wait_for(closed, 20)
        await app.closed()  # nothing runs

    asyncio.run(scenario())


def test_closed_is_about_one_run_and_waits_for_the_first_one(app):
    async def scenario():
        closed = asyncio.create_task(app.closed())
        await asyncio.sleep(0)
        await app.start()
        assert not closed.done()
        await app.stop()
        await app.start()  # at once
        await asyncio.wait_for(closed, 20)
        again = asyncio.create_task(app.closed())
        await asyncio.sleep(0)
        assert not again.done()
        await app.stop()
        await asyncio.wait_for(again, 20)

    asyncio.run(scenario())


def test_all_that_wait_for_the_end_are_told_why_the_app_had_to_stop(app):
    async def fails(function, *arguments):
        await in_thread(function, *arguments)
        if function.__name__ == "stop":
            raise RuntimeError("a worker has failed")

    in_thread, app._in_thread = app._in_thread, fails

    async def scenario():
        await app.start()
        waiting = [asyncio.create_task(app.closed()) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="a worker has failed"):
            await app.stop()
        for closed in (*waiting, app.closed()):
            with pytest.raises(RuntimeError, match="a worker has failed"):
                await asyncio.wait_for(closed, 20)

    asyncio.run(scenario())


def test_records_of_the_log_have_the_event_and_its_fields(caplog):
    app = zonda.App(listen=["127.0.0.1:0"], workers=1)

    async def scenario():
        async with app:
            pass

    with caplog.at_level(logging.INFO, logger="zonda"):
        asyncio.run(scenario())
    listening = [it for it in caplog.records if getattr(it, "event", None) == "listening"]
    assert listening and listening[0].fields["address"].startswith("127.0.0.1:")
    assert listening[0].getMessage() == f"listening address={listening[0].fields['address']}"


def test_several_record_sets_are_put_in_one_step():
    store = zonda.MemoryStore()
    store.set_many([("a.example", "A", 60, ["192.0.2.1"]), ("b.example", 1, 60, ["192.0.2.2"])])
    assert store.get("b.example")[0].data == ["192.0.2.2"]
    with pytest.raises(ValueError):
        wrong = [("a.example", "A", 60, ["192.0.2.3"]), ("b.example", "A", 60, ["192.0.2"])]
        store.set_many(wrong)
    assert store.get("a.example")[0].data == ["192.0.2.1"]


def test_an_app_and_a_router_show_what_they_are(app):
    app.add_handler("a.example", lambda query, reply: None)
    app.middleware("*.example")(lambda query, reply, call_next: call_next())
    app.middleware(lambda query, reply, call_next: call_next())
    has = "handlers: 1, middleware: 2"
    assert repr(app) == f"<zonda.App not running, {has}>"
    assert repr(app.route("eu.example")) == "<zonda.Router below 'eu.example'>"

    async def main():
        starting = asyncio.create_task(app.start())
        await asyncio.sleep(0)
        assert repr(app) == f"<zonda.App starting or stopping, {has}>"
        await starting
        _, port = app.addresses[0]
        assert repr(app) == f"<zonda.App on 127.0.0.1:{port}, {has}>"
        await app.stop()

    asyncio.run(main())
    assert repr(app) == f"<zonda.App not running, {has}>"
