"""Zones that follow stores, and zones that are given as text while the app runs."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import environment, python
from databases import Postgres, Redis, free_port, required, running

import zonda

# How soon a change must be answered on a machine that has other things to do, seconds.
SOON = 5.0
# How soon a database that is back must be followed again: the longest pause and some.
AGAIN = 15.0


async def becomes(
    client: Any, name: str, rtype: str, expected: str, limit: float = SOON
) -> None:
    """Waits until a question is answered so."""
    asked = time.monotonic()
    while (told := await client.told(name, rtype)) != expected:
        assert time.monotonic() < asked + limit, f"{name} {rtype}: {told}, not {expected}"
        await asyncio.sleep(0.005)


async def is_logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """Waits until the log has a text."""
    limit = time.monotonic() + AGAIN
    while not any(text in record.message for record in caplog.records):
        assert time.monotonic() < limit, [record.message for record in caplog.records]
        await asyncio.sleep(0.01)


@pytest.fixture(params=["memory", "redb", "redis", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[zonda.Store]:
    """An empty store of each kind."""
    if request.param == "memory":
        yield zonda.MemoryStore()
    elif request.param == "redb":
        yield zonda.RedbStore(tmp_path / "records.redb")
    elif request.param == "redis":
        with running(Redis) as redis:
            yield zonda.RedisStore(redis.url, prefix="dns:", compare_every=60)
    else:
        with running(Postgres) as postgres:
            yield zonda.PostgresStore(postgres.url)


def test_what_a_store_has_is_answered_as_it_changes(app, serve, store):
    store.set("Example.org.", "NS", 3600, ["ns.example.net"])
    store.set("www.example.org", "A", 60, ["192.0.2.1"])
    store.set("www.example.net", "A", 60, ["192.0.2.4"])
    app.store("Example.org", store)
    app.store("example.net.", store)

    async def scenario(client):
        www = "www.example.org. 60 A"
        assert await client.told("www.example.org") == f"NOERROR | {www} 192.0.2.1"
        assert (await client.told("www.example.net")).endswith("192.0.2.4")
        assert (await client.told("example.org", "NS")).endswith("3600 NS ns.example.net.")
        assert await client.told("www.example.com") == "REFUSED"

        await asyncio.to_thread(
            store.set, "WWW.example.org", "a", 60, ["192.0.2.2", "192.0.2.3"]
        )
        expected = f"NOERROR | {www} 192.0.2.2 | {www} 192.0.2.3"
        await becomes(client, "www.example.org", "A", expected)
        sets = await asyncio.to_thread(store.get, "www.example.org")
        assert sets == [("www.example.org", "A", 60, ["192.0.2.2", "192.0.2.3"])]
        assert isinstance(sets[0], zonda.RecordSet)
        assert (sets[0].owner, sets[0].rtype, sets[0].ttl) == ("www.example.org", "A", 60)
        owners = {records.owner for records in await asyncio.to_thread(store.load, "example.org")}
        assert owners >= {"example.org", "www.example.org"}

        assert await asyncio.to_thread(store.remove, "www.example.org.", "A")
        assert not await asyncio.to_thread(store.remove, "www.example.org", 1)
        await becomes(client, "www.example.org", "A", "NXDOMAIN")
        assert await asyncio.to_thread(store.get, "www.example.org") == []
        await asyncio.to_thread(store.set, "www.example.net", 16, 60, ['"a b" c'])
        await becomes(
            client, "www.example.net", "TXT", 'NOERROR | www.example.net. 60 TXT "a b" "c"'
        )

    serve(app, scenario)


def test_a_store_refuses_what_could_not_be_served(store):
    with pytest.raises(ValueError, match=r"^www.example.org A: `192.0.2`: "):
        store.set("www.example.org", "A", 60, ["192.0.2.1", "192.0.2"])
    with pytest.raises(ValueError, match=r"^a..b A: .*empty label"):
        store.set("a..b", "A", 60, ["192.0.2.1"])
    with pytest.raises(ValueError, match="there are no data"):
        store.set("www.example.org", "A", 60, [])
    with pytest.raises(ValueError, match="'NONSENSE' is not a record type"):
        store.remove("www.example.org", "NONSENSE")
    with pytest.raises(TypeError, match="www.example.org A: the data must be a list of texts"):
        store.set("www.example.org", "A", 60, "192.0.2.1")
    with pytest.raises(zonda.RecordError, match="A record: the ttl must be a whole number") as told:
        store.set_many([("www.example.org", "A", -1, ["192.0.2.1"])])
    assert told.value.code == "ZONDA_RECORD"
    with pytest.raises(zonda.RecordTypeError, match=r"expected \(owner, rtype, ttl, data\), not 5"):
        store.set_many([5])
    with pytest.raises(ValueError, match=r'zone "a..b"'):
        store.load("a..b")
    assert store.get("www.example.org") == []


def test_databases_that_are_none_or_not_there_are_told_by_exceptions(tmp_path):
    for url in ["http://127.0.0.1", "redis://127.0.0.1/x"]:
        with pytest.raises(zonda.ConfigError, match="redis://") as wrong:
            zonda.RedisStore(url)
        assert wrong.value.code == "ZONDA_CONFIG"
    with pytest.raises(ValueError, match="compare_every"):
        zonda.RedisStore("redis://127.0.0.1", compare_every=-1)
    with pytest.raises(ValueError):
        zonda.PostgresStore("no=parameters")
    with pytest.raises(ValueError, match="compare_every"):
        zonda.PostgresStore("host=127.0.0.1", compare_every=-1)
    port = free_port()
    with pytest.raises(OSError, match=f"Redis at 127.0.0.1:{port}: ") as told:
        zonda.RedisStore(f"redis://127.0.0.1:{port}").get("example.org")
    assert isinstance(told.value, zonda.StoreError) and told.value.code == "ZONDA_STORE"
    with pytest.raises(OSError, match="refused"):
        zonda.PostgresStore(f"postgresql://me@127.0.0.1:{port}/x").load("example.org")
    with pytest.raises(OSError, match="none/records.redb: "):
        zonda.RedbStore(tmp_path / "none" / "records.redb")
    file = tmp_path / "records.redb"
    store = zonda.RedbStore(str(file))
    with pytest.raises(OSError, match="records.redb: "):
        zonda.RedbStore(file)
    store.set("www.example.org", "A", 60, ["192.0.2.1"])
    del store
    gc.collect()
    assert zonda.RedbStore(file).get("www.example.org")[0].data == ["192.0.2.1"]


def test_other_threads_run_while_a_database_is_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = zonda.RedisStore(f"redis://127.0.0.1:{silent.getsockname()[1]}")
        failed = []

        def get():
            with pytest.raises(OSError):
                store.get("example.org")
            failed.append(time.monotonic())

        thread = threading.Thread(target=get)
        began = time.monotonic()
        thread.start()
        silent.accept()[0].close()  # which this thread would not come to, if that one kept it off
        thread.join(30)
        assert failed[0] < began + 5


def test_stores_of_redis_follow_changes_of_others_and_a_restart(app, serve):
    with running(Redis) as redis:
        app.store("example.org", zonda.RedisStore(redis.url))

        async def scenario(client):
            def now(address):
                return f"NOERROR | www.example.org. 60 A {address}"

            value = '{"ttl":60,"data":["%s"]}'
            redis.tell("HSET", "org:example:www", "A", value % "192.0.2.1")
            await becomes(client, "www.example.org", "A", now("192.0.2.1"))
            redis.end()
            await asyncio.sleep(0.5)
            assert await client.told("www.example.org") == now("192.0.2.1")
            assert redis.restart()
            redis.tell("HSET", "org:example:www", "A", value % "192.0.2.2")
            await becomes(client, "www.example.org", "A", now("192.0.2.2"), AGAIN)

        serve(app, scenario)


def test_stores_of_postgresql_follow_changes_of_others_and_a_restart(app, serve):
    with running(Postgres) as postgres:
        app.store("example.org", zonda.PostgresStore(postgres.url))

        async def scenario(client):
            def now(address):
                return f"NOERROR | www.example.org. 60 A {address}"

            insert = "INSERT INTO zonda_records VALUES ('www.example.org', 'A', 60, '192.0.2.1')"
            postgres.tell(insert)
            await becomes(client, "www.example.org", "A", now("192.0.2.1"))
            postgres.end()
            await asyncio.sleep(0.5)
            assert await client.told("www.example.org") == now("192.0.2.1")
            assert postgres.restart()
            postgres.tell("UPDATE zonda_records SET data = '192.0.2.2'")
            await becomes(client, "www.example.org", "A", now("192.0.2.2"), AGAIN)

        serve(app, scenario)


def test_a_missing_program_fails_a_test_unless_tests_are_told_to_do_without(monkeypatch):
    monkeypatch.delenv("TEST_WITHOUT", raising=False)
    with pytest.raises(pytest.fail.Exception, match="no-such-server is not installed: `make pack"):
        required("no-such-server")
    monkeypatch.setenv("TEST_WITHOUT", "psql, no-such-server")
    with pytest.raises(pytest.skip.Exception, match="no-such-server"):
        required("no-such-server")


class Own:
    """A store of one's own, which can be made to fail or to wait."""

    def __init__(self) -> None:
        self.records = [("www.example.org", "A", 60, ["192.0.2.1"])]
        self.calls: list[tuple[str, str]] = []
        self.changed: Any = None
        self.fails = False
        self.go_on = threading.Event()
        self.go_on.set()

    def answer(self, method: str, name: str) -> list[Any]:
        self.calls.append((method, name))
        self.go_on.wait()
        if self.fails:
            raise LookupError("the well is dry")
        return self.records

    def load(self, zone):
        yield from self.answer("load", zone)

    def get(self, owner):
        return [zonda.RecordSet(*it) for it in self.answer("get", owner) if it[0] == owner]

    def watch(self, zone, changed):
        self.answer("watch", zone)
        self.changed = changed

    def put(self, address, owner="www.example.org"):
        """Writes, and tells so."""
        self.records = [(owner, "A", 60, [address])]
        self.changed(owner)


def www(address):
    """How the address of `www.example.org` is told."""
    return f"NOERROR | www.example.org. 60 A {address}"


def test_a_store_of_ones_own_is_called_when_it_says_that_something_changed(app, serve):
    own = Own()
    app.store("Example.org.", own)

    async def scenario(client):
        assert own.calls == [("watch", "example.org"), ("load", "example.org")]
        assert await client.told("www.example.org") == www("192.0.2.1")
        own.put("192.0.2.2")
        await becomes(client, "www.example.org", "A", www("192.0.2.2"))
        assert own.calls[2:] == [("get", "www.example.org")]
        own.records = [("a.example.org", "TXT", 5, ["x"]), ("b.example.org", "A", 5, ["no"])]
        own.changed()
        await becomes(client, "a.example.org", "TXT", 'NOERROR | a.example.org. 5 TXT "x"')
        assert await client.told("www.example.org") == "NXDOMAIN"
        assert await client.told("b.example.org") == "NXDOMAIN"
        assert own.calls[3:] == [("load", "example.org")]

    serve(app, scenario)
    own.changed("www.example.org")  # too late, and nobody minds


def test_a_store_that_raises_leaves_the_last_data_and_is_followed_again(app, serve, caplog):
    own = Own()
    app.store("example.org", own)

    async def scenario(client):
        own.fails = True
        own.put("192.0.2.2")
        await is_logged(caplog, "the well is dry")
        assert await client.told("www.example.org") == www("192.0.2.1")
        own.fails = False
        await becomes(client, "www.example.org", "A", www("192.0.2.2"), AGAIN)
        assert [method for method, _ in own.calls].count("watch") == 1
        own.records = [("www.example.org", "A", 60, "192.0.2.3")]  # no list: none can be read
        own.changed()
        await is_logged(caplog, "TypeError")
        assert await client.told("www.example.org") == www("192.0.2.2")

    with caplog.at_level(logging.INFO, logger="zonda"):
        serve(app, scenario)
    (error,) = [it for it in caplog.records if "LookupError: the well is dry" in it.message]
    assert error.levelno == logging.ERROR
    told = "a store is unavailable, retrying; its zones are served as they were"
    assert error.message.startswith(told)
    assert "in answer" in error.message, "it has a traceback"


def test_the_ttl_of_a_store_that_is_wrong_is_told_with_owner_and_type(app, serve, caplog):
    own = Own()
    app.store("example.org", own)

    async def scenario(client):
        own.records = [("www.example.org", "A", -1, ["192.0.2.3"])]
        own.changed()
        await is_logged(caplog, "RecordError: www.example.org A: the ttl must be a whole number")
        assert await client.told("www.example.org") == www("192.0.2.1")

    with caplog.at_level(logging.INFO, logger="zonda"):
        serve(app, scenario)


def test_a_store_that_does_not_return_leaves_the_last_data_and_the_app_stops(app, caplog):
    own = Own()
    app.store("example.org", own)
    ends = []

    async def main():
        async with app:
            own.go_on.clear()
            own.put("192.0.2.2")
            await is_logged(caplog, "method=get seconds=3")
            reply = await app.query("www.example.org")
            assert reply.answers[0].ip == "192.0.2.1"
            ends.append(time.monotonic())

    with caplog.at_level(logging.INFO, logger="zonda"):
        asyncio.run(main())
    assert time.monotonic() < ends[0] + 10
    assert any("its thread is left to end later" in record.message for record in caplog.records)
    own.go_on.set()


def test_a_store_that_does_not_come_up_keeps_its_zone_only_from_being_served(app, serve):
    own = Own()
    own.go_on.clear()
    app.store("example.org", own)
    app.zone("example.net", text="@ 60 SOA ns x 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.5\n")

    async def scenario(client):
        assert await client.told("www.example.org") == "SERVFAIL"
        assert (await client.told("ns.example.net")).endswith("192.0.2.5")
        own.go_on.set()
        await becomes(client, "www.example.org", "A", www("192.0.2.1"), AGAIN)

    serve(app, scenario)


def test_a_store_is_followed_whenever_the_app_starts_and_its_threads_end(app):
    own = Own()
    app.store("example.org", own)

    async def main():
        for last in range(1, 4):
            own.records = [("www.example.org", "A", 60, [f"192.0.2.{last}"])]
            async with app:
                assert (await app.query("www.example.org")).answers[0].ip == f"192.0.2.{last}"

    asyncio.run(main())
    assert [method for method, _ in own.calls].count("watch") == 3
    limit = time.monotonic() + SOON
    while any(thread.name == "zonda-store" for thread in threading.enumerate()):
        assert time.monotonic() < limit
        time.sleep(0.01)


STUBBORN = """
import asyncio, sys, threading, time, zonda

class Stubborn:
    def load(self, zone):
        yield ("www.example.org", "A", 60, ["192.0.2.1"])
    def get(self, owner):
        began.set()
        if sys.argv[1] == "busy":
            while True:
                pass
        elif sys.argv[1] == "waits":
            threading.Event().wait()
        elif sys.argv[1] == "naps":
            while True:
                time.sleep(0.0005)
        sys.exit(3)
    def watch(self, zone, changed):
        self.changed = changed

began = threading.Event()
store = Stubborn()
app = zonda.App("127.0.0.1:0", workers=1)
app.store("example.org", store)

async def main():
    await app.start()
    store.changed("www.example.org")
    await asyncio.to_thread(began.wait)
    await asyncio.sleep(0.3)
    assert (await app.query("www.example.org")).answers
    if sys.argv[2] == "stops":
        await app.stop()

asyncio.run(main())
print("ended")
"""


@pytest.mark.parametrize("end", ["stops", "does not stop"])
@pytest.mark.parametrize("how", ["busy", "waits", "naps", "exits"])
def test_a_stubborn_store_keeps_no_process_from_ending_well(how, end):
    command = [*python(), "-c", STUBBORN, how, end]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environment()
    )
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr


def test_what_is_no_store_and_no_name_of_a_zone_is_told(app):
    class Half:
        def load(self, zone):
            return []

    with pytest.raises(TypeError, match="has no get"):
        app.store("example.org", Half())
    with pytest.raises(zonda.ZoneError, match=r'zone "a..b"'):
        app.store("a..b", Own())


def zone_text(serial, records=""):
    """A zone as the text of a master file."""
    return f"@ 60 SOA ns x {serial} 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.53\n{records}"


def test_a_zone_is_given_as_text_replaced_and_taken_away_while_the_app_runs(app, serve):
    app.zone("Example.org", text=zone_text(1, "a 60 A 192.0.2.1\n"))

    async def scenario(client):
        assert (await client.told("a.example.org")).endswith("192.0.2.1")
        await app.set_zone_text("example.org.", zone_text(2, "a 60 A 192.0.2.2\n"))
        assert (await client.told("a.example.org")).endswith("192.0.2.2")
        await app.set_zone_text("example.net", zone_text(1, "a 60 A 192.0.2.3\n"))
        assert (await client.told("a.example.net")).endswith("192.0.2.3")

        wrong = zone_text(3, "a 60 A 192.0.2.4\nb 60 A 192.0.2\n")
        with pytest.raises(ValueError, match=r"example.org. \(of the program\):5:\d+: error: "):
            await app.set_zone_text("example.org", wrong)
        with pytest.raises(ValueError, match=r"zone example.org.: "):
            await app.set_zone_text("example.org", "a 60 A 192.0.2.4\n")
        with pytest.raises(ValueError, match=r'zone "a..b"'):
            await app.set_zone_text("a..b", zone_text(1))
        await app.reload()
        assert (await client.told("a.example.org")).endswith("192.0.2.2")

        assert await app.remove_zone_text("EXAMPLE.net")
        assert not await app.remove_zone_text("example.net")
        assert await client.told("a.example.net") == "REFUSED"
        assert (await client.told("a.example.org")).endswith("192.0.2.2")

    serve(app, scenario)

    async def again():
        with pytest.raises(RuntimeError, match="not running"):
            await app.set_zone_text("example.org", zone_text(4))
        async with app:
            assert (await app.query("a.example.org")).answers[0].ip == "192.0.2.2"
            assert (await app.query("a.example.net")).rcode == "REFUSED"

    asyncio.run(again())


def test_texts_and_stores_do_not_come_in_each_others_way(app, serve):
    store = zonda.MemoryStore()
    store.set("www.example.org", "A", 60, ["192.0.2.1"])
    app.store("example.org", store)

    async def scenario(client):
        await app.set_zone_text("example.net", zone_text(1))
        assert await client.told("www.example.org") == www("192.0.2.1")
        with pytest.raises(ValueError, match="has what a store has"):
            await app.set_zone_text("Example.org", zone_text(1))
        with pytest.raises(ValueError, match="has what a store has"):
            await app.remove_zone_text("example.org.")
        store.set("www.example.org", "A", 60, ["192.0.2.2"])
        await becomes(client, "www.example.org", "A", www("192.0.2.2"))
        await app.reload()
        assert await client.told("www.example.org") == www("192.0.2.2")
        assert (await client.told("ns.example.net")).endswith("192.0.2.53")

    serve(app, scenario)


TYPED = """
from collections.abc import Callable
from pathlib import Path

import zonda


class Hosts:
    def load(self, zone: str) -> list[zonda.RecordSet]:
        return self.get(f"www.{zone}")

    def get(self, owner: str) -> list[zonda.RecordSet]:
        return [zonda.RecordSet(owner, "A", 60, ["192.0.2.1"])]

    def watch(self, zone: str, changed: Callable[[str], None]) -> None:
        changed("www.example.org")


async def main() -> bool:
    app = zonda.App()
    stores: list[zonda.Store] = [zonda.MemoryStore(), zonda.RedbStore(Path("a"))]
    stores.append(zonda.RedisStore("redis://127.0.0.1", prefix="a", compare_every=5))
    stores.append(zonda.PostgresStore("postgresql://127.0.0.1/x", compare_every=60.0))
    for store in stores:
        app.store("example.org", store)
        store.set("www.example.org", "A", 60, ["192.0.2.1"])
        texts: list[str] = [text for records in store.get("a") for text in records.data]
        print(texts, store.remove("a", 1))
    app.store("example.net", Hosts())
    await app.set_zone_text("example.com", "text")
    return await app.remove_zone_text("example.com")
"""


@pytest.mark.once
def test_types_know_stores_of_both_kinds_and_their_mistakes(tmp_path):
    (tmp_path / "right.py").write_text(TYPED)
    (tmp_path / "wrong.py").write_text("import zonda\nzonda.App().store('example.org', object())\n")

    def check(name):
        command = [sys.executable, "-m", "mypy", "--strict", name]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    right, wrong = check("right.py"), check("wrong.py")
    assert right.returncode == 0, right.stdout + right.stderr
    assert "wrong.py:2: error: " in wrong.stdout


def test_stores_show_where_their_records_are_and_no_password(tmp_path):
    file = tmp_path / "records.redb"
    assert repr(zonda.RedbStore(file)) == f"<zonda.RedbStore {file}>"
    assert repr(zonda.MemoryStore()) == "<zonda.MemoryStore>"
    redis = zonda.RedisStore("redis://ann:secret@127.0.0.1:6380/3", prefix="eu:")
    assert repr(redis) == '<zonda.RedisStore 127.0.0.1:6380 "eu:">'
    assert repr(zonda.RedisStore("redis://127.0.0.1")) == "<zonda.RedisStore 127.0.0.1:6379>"
    for parameters in (
        "postgresql://ann:secret@127.0.0.1/zones",
        "host=127.0.0.1 user=ann password='secret' dbname=zones",
    ):
        assert repr(zonda.PostgresStore(parameters)) == "<zonda.PostgresStore 127.0.0.1/zones>"
