"""Handlers, asked over sockets."""

from __future__ import annotations

import asyncio
import collections
import contextvars
import itertools
import json
import logging
import re
import subprocess
import time
from pathlib import Path

import dns.exception
import dns.rcode
import pytest
from conftest import environment, python

import zonda


def test_sync_and_async_handlers_answer_their_names_and_types(app, serve):
    @app.handle("sync.example.com", types=["A"])
    def sync(query, reply):
        reply.answer(zonda.A("192.0.2.1", ttl=60))

    @app.handle("*.example.com", types=["A", "AAAA"])
    async def asynchronous(query, reply):
        reply.answer(zonda.A("192.0.2.2", ttl=60))

    @app.handle("waits.example.com")
    async def waits(query, reply):
        await asyncio.sleep(0.01)
        reply.answer(zonda.TXT(query.type, ttl=60))

    async def scenario(client):
        assert await client.told("sync.example.com") == "NOERROR | sync.example.com. 60 A 192.0.2.1"
        assert await client.told("x.y.example.com") == "NOERROR | x.y.example.com. 60 A 192.0.2.2"
        assert await client.told("waits.example.com", "MX") == (
            'NOERROR | waits.example.com. 60 TXT "MX"'
        )
        assert await client.told("sync.example.com", "TXT") == "NOERROR"
        assert await client.told("example.com") == "NOERROR"
        assert await client.told("com") == "REFUSED"
        assert await client.told("sync.example.com", tcp=True) == (
            "NOERROR | sync.example.com. 60 A 192.0.2.1"
        )

    serve(app, scenario)


def test_a_handler_lies_over_its_zone_and_leaves_to_it_what_it_does_not_answer(
    app, serve, zone_file
):
    app.zone("example.org", zone_file)

    @app.handle("a.example.org", types=["A"])
    def a(query, reply):
        reply.answer(zonda.A("192.0.2.1"))

    @app.handle("ns.example.org")
    async def passes(query, reply):
        if query.client == "192.0.2.7":
            reply.nxdomain()
        reply.pass_on()

    async def scenario(client):
        assert await client.told("a.example.org") == "NOERROR | a.example.org. 300 A 192.0.2.1"
        assert await client.told("a.example.org", "TXT") == (
            'NOERROR | a.example.org. 300 TXT "zone"'
        )
        assert await client.told("ns.example.org") == "NOERROR | ns.example.org. 300 A 192.0.2.53"
        assert await client.told("none.example.org") == "NXDOMAIN"

    serve(app, scenario)


def test_an_exception_is_servfail_and_logged_with_its_traceback(app, serve, caplog):
    @app.handle("sync.example")
    def sync(query, reply):
        raise ValueError("a mistake in sync")

    @app.handle("early.example")
    async def early(query, reply):
        reply.answer(zonda.A("192.0.2.1"))
        raise ValueError("a mistake in early")

    @app.handle("late.example")
    async def late(query, reply):
        await asyncio.sleep(0)
        raise ValueError("a mistake in late")

    @app.handle("exit.example")
    def leaves(query, reply):
        raise SystemExit(1)

    @app.handle("wrong.example")
    def wrong(query, reply):
        return 42

    async def scenario(client):
        for name in ("sync", "early", "late", "exit", "wrong"):
            assert await client.told(f"{name}.example") == "SERVFAIL", name

    with caplog.at_level(logging.ERROR, logger="zonda"):
        serve(app, scenario)
    for name in ("sync", "early", "late"):
        assert f"ValueError: a mistake in {name}" in caplog.text
        assert f"in {name}\n" in caplog.text, "the traceback names the function"
    assert "TypeError: answers[0]: expected a record such as zonda.A; it is 42 (int)" in caplog.text


def test_a_wrong_record_is_named_with_its_section_place_and_value(app, serve, caplog):
    @app.handle("returned.example")
    def returned(query, reply):
        return [zonda.A("192.0.2.1"), 42]

    @app.handle("methods.example")
    def methods(query, reply):
        expected = "expected a record such as zonda.A; it is"
        a = zonda.A("192.0.2.1")
        with pytest.raises(TypeError) as told:
            reply.answer(a, [a, [None]])
        of = " (handler of methods.example)"
        assert str(told.value) == f"answers[2]: {expected} None (NoneType){of}"
        error = told.value
        assert (error.section, error.index, error.value) == ("answers", 2, None)
        assert (error.code, error.pattern) == ("ZONDA_RECORD", "methods.example")
        with pytest.raises(TypeError) as told:
            reply.authority("text" * 100)
        assert str(told.value).startswith(f"authorities[0]: {expected} 'texttext")
        assert len(str(told.value)) < 200
        assert told.value.value == "text" * 100
        with pytest.raises(TypeError) as told:
            reply.additionals = [a, a, {}]
        assert str(told.value) == f"additionals[2]: {expected} {{}} (dict){of}"
        with pytest.raises(TypeError) as told:
            reply.nxdomain(soa=42)
        assert str(told.value) == f"authorities[0]: {expected} 42 (int){of}"

        class Wrong:
            rdtype = 1

            def to_wire(self):
                return b"too long for an address"

            def __repr__(self):
                return "Wrong()"

        with pytest.raises(ValueError) as told:
            reply.answers = [Wrong()]
        assert re.match(r"answers\[0\]: A record: .*; it is Wrong\(\) \(Wrong\) ", str(told.value))

        class Raises:
            @property
            def rdtype(self):
                return 1

            def to_wire(self):
                raise KeyError("of the object itself")

        with pytest.raises(KeyError, match="of the object itself"):
            reply.answers = [Raises()]
        reply.clear()
        reply.answer(a)

    async def scenario(client):
        assert await client.told("returned.example") == "SERVFAIL"
        assert (await client.told("methods.example")).startswith("NOERROR"), caplog.text

    with caplog.at_level(logging.ERROR, logger="zonda"):
        serve(app, scenario)
    assert "answers[1]: expected a record such as zonda.A; it is 42 (int)" in caplog.text


def test_a_wrong_record_says_which_handler_made_it(app, serve):
    told = []

    @app.handle("*.example", ["A"])
    def makes(query, reply):
        return zonda.A("192.0.2")

    @app.on_error(zonda.RecordError)
    def wrong_record(error, query, reply):
        told.append((error.code, error.section, error.pattern))
        reply.refused()

    async def scenario(client):
        assert await client.told("www.example") == "REFUSED"

    serve(app, scenario)
    assert told == [("ZONDA_RECORD", None, "*.example/A")]


def test_records_are_taken_from_everything_that_can_be_iterated_over(app, serve):
    def some(*last):
        for number in last:
            yield zonda.A(f"192.0.2.{number}")

    @app.handle("generator.example")
    def generator(query, reply):
        assert not reply.is_answered
        yield zonda.A("192.0.2.1")
        reply.ad = True  # the code of a generator may use the reply
        yield from some(2, 3)

    @app.handle("deque.example")
    async def deque(query, reply):
        return collections.deque([zonda.A("192.0.2.1"), *some(2), zonda.A("192.0.2.3")])

    @app.handle("nested.example")
    def nested(query, reply):
        reply.answer(zonda.A("192.0.2.1"), [some(2), {"k": zonda.A("192.0.2.3")}.values()])

    @app.handle("set.example")
    def sets(query, reply):
        reply.answers = map(zonda.A, ["192.0.2.1", "192.0.2.2", "192.0.2.3"])

    @app.handle("raises.example")
    def raises(query, reply):
        yield zonda.A("192.0.2.1")
        raise KeyError("in a generator")

    @app.handle("itself.example")
    def itself(query, reply):
        endless = []
        endless.append(endless)
        return endless

    @app.handle("endless.example")
    def endless(query, reply):
        return itertools.repeat(zonda.A("192.0.2.1"))

    @app.handle("lists.example")
    def lists(query, reply):
        reply.answer(itertools.repeat([]))

    @app.handle("replaced.example")
    def replaced(query, reply):
        reply.answers = itertools.repeat(zonda.A("192.0.2.1"))

    async def scenario(client):
        for word in ("generator", "deque", "nested", "set"):
            reply = await app.query(f"{word}.example")
            assert [it.ip[-1] for it in reply.of(zonda.A)] == ["1", "2", "3"], word
        for word in ("raises", "itself", "endless", "lists", "replaced"):
            reply = await app.query(f"{word}.example")
            assert (reply.rcode, reply.answers) == ("SERVFAIL", ()), word

    serve(app, scenario)


def test_a_generator_that_yields_nothing_leaves_the_reply_as_it_is(app, serve):
    nothing = {
        "drops": lambda reply: reply.drop(),
        "refuses": lambda reply: reply.refused(),
    }

    @app.handle(":way.example")
    def generator(query, reply, way):
        nothing[way](reply)
        yield from ()

    @app.handle(":way.late.example")
    async def late(query, reply, way):
        await asyncio.sleep(0)
        return generator(query, reply, way)

    app.add_handler("list.example", lambda query, reply: [])
    app.add_handler("lists.example", lambda query, reply: [iter([])])

    async def scenario(client):
        for below in ("", "late."):
            with pytest.raises(zonda.NoReply):
                await app.query(f"drops.{below}example")
            assert (await app.query(f"refuses.{below}example")).rcode == "REFUSED"
        assert (await app.query("list.example")).rcode == "NOERROR"
        assert (await app.query("lists.example")).rcode == "NOERROR"

    serve(app, scenario)


def test_what_making_an_iterator_raises_is_not_lost(app, serve):
    class Broken:
        def __init__(self, error):
            self.error = error

        def __iter__(self):
            raise self.error

    class Wrong:
        def __iter__(self):
            return 5

    class Unable:
        __iter__ = None

    told = []

    @app.handle("a.example")
    def answers(query, reply):
        for value in Broken(KeyError("away")), Broken(TypeError("a mistake")), Wrong(), Unable():
            with pytest.raises(Exception) as caught:
                reply.answer([value])
            told.append((type(caught.value), str(caught.value)))

    serve(app, lambda client: app.query("a.example"))
    assert told[:2] == [(KeyError, "'away'"), (TypeError, "a mistake")]
    assert told[2][0] is TypeError and "non-iterator" in told[2][1]
    assert told[3][0] is zonda.RecordTypeError


def test_the_code_of_a_generator_runs_in_the_context_of_its_query(app, serve):
    variable = contextvars.ContextVar("variable", default="unset")

    @app.handle("first.example")
    async def first(query, reply):
        variable.set(query.name)
        return generator()

    @app.handle("waits.example")
    async def waits(query, reply):
        variable.set(query.name)
        await asyncio.sleep(0.01)
        return generator()

    def generator():
        yield zonda.TXT(variable.get())
        variable.set("of another query")

    async def scenario(client):
        for name in ("first", "waits", "first"):
            reply = await app.query(f"{name}.example", "TXT")
            assert reply.answers[0].txts == (f"{name}.example.",)
        assert variable.get() == "unset"

    serve(app, scenario)


def test_a_handler_that_never_answers_is_cut_off_and_cancelled(serve):
    app = zonda.App(listen=["127.0.0.1:0"], workers=1, deadline=0.3)
    ended = []

    @app.handle("never.example")
    async def never(query, reply):
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    @app.handle("blocks.example")
    def blocks(query, reply):
        time.sleep(1)

    async def scenario(client):
        asked = time.monotonic()
        assert await client.told("never.example") == "SERVFAIL"
        assert time.monotonic() - asked < 2
        await asyncio.sleep(0.6)
        assert ended == ["cancelled"]
        asked = time.monotonic()
        blocked = asyncio.create_task(client.told("blocks.example"))
        assert await blocked == "SERVFAIL"
        assert time.monotonic() - asked < 2

    serve(app, scenario)


def test_a_dropped_query_gets_no_reply(app, serve):
    @app.handle("*")
    def drop(query, reply):
        reply.answer(zonda.A("192.0.2.1"))
        reply.drop()

    async def scenario(client):
        with pytest.raises(dns.exception.Timeout):
            await client.ask("a.example", timeout=0.4)
        with pytest.raises(zonda.NoReply, match="a.example A") as raised:
            await client.app.query("a.example")
        assert raised.value.code == "ZONDA_NO_REPLY"

    serve(app, scenario)


def test_a_reply_has_all_that_was_put_into_it(app, serve):
    soa = zonda.SOA("ns.example", "hostmaster.example", 1, "1h", 600, 86400, 60, owner="example")

    @app.handle("none.example")
    def none(query, reply):
        reply.nxdomain()
        reply.authority(soa)
        reply.extended_error("Blocked", "on the list")

    @app.handle("referral.example")
    def referral(query, reply):
        reply.authority(zonda.NS("ns.sub.example"))
        reply.additional(zonda.A("192.0.2.53", owner="ns.sub.example"))
        reply.aa = False

    @app.handle("codes.example")
    def codes(query, reply):
        reply.rcode = "NOTIMP"
        assert reply.rcode == "NOTIMP"
        reply.rcode = 9

    @app.handle("many.example")
    def many(query, reply):
        reply.answer([zonda.A(f"192.0.2.{last}") for last in range(1, 101)], ttl=5)

    async def scenario(client):
        reply = await client.ask("none.example", use_edns=0)
        assert reply.rcode() == dns.rcode.NXDOMAIN
        assert str(reply.authority[0]) == (
            "example. 300 IN SOA ns.example. hostmaster.example. 1 3600 600 86400 60"
        )
        (error,) = [option for option in reply.options if option.otype == 15]
        assert (error.code, error.text) == (15, "on the list")
        reply = await client.ask("referral.example")
        assert not reply.flags & dns.flags.AA
        assert str(reply.authority[0]) == "referral.example. 300 IN NS ns.sub.example."
        assert str(reply.additional[0]) == "ns.sub.example. 300 IN A 192.0.2.53"
        assert (await client.ask("codes.example")).rcode() == dns.rcode.NOTAUTH
        assert (await client.ask("many.example")).flags & dns.flags.TC
        reply = await client.ask("many.example", tcp=True)
        assert (len(reply.answer[0]), reply.answer[0].ttl) == (100, 5)

    serve(app, scenario)


def test_a_query_tells_all_about_itself(app, serve):
    seen = {}

    @app.handle(":user.:group.example")
    def look(query, reply):
        for name in dir(query):
            if not name.startswith("_"):
                seen[name] = getattr(query, name)
        reply.no_data()

    async def scenario(client):
        subnet = dns.edns.ECSOption("192.0.2.0", 24)
        cookie = dns.edns.CookieOption(b"12345678", b"")
        await client.ask(
            "Ann.Admins.example", "AAAA", want_dnssec=True, options=[subnet, cookie], payload=1400
        )

    serve(app, scenario)
    assert seen["name"] == "ann.admins.example."
    assert seen["original_name"] == "Ann.Admins.example."
    assert (seen["type"], seen["type_number"]) == ("AAAA", 28)
    assert (seen["client"], seen["transport"]) == ("127.0.0.1", "udp")
    assert seen["client_port"] > 0
    assert seen["captures"] == {"user": "ann", "group": "admins"}
    assert seen["capture"]("user") == "ann" and seen["capture"]("other") is None
    assert (seen["dnssec_ok"], seen["udp_size"]) == (True, 1400)
    assert seen["client_subnet"] == "192.0.2.0/24"
    assert seen["cookie"] == b"12345678"
    assert (8, b"\x00\x01\x18\x00\xc0\x00\x02") in seen["options"]
    assert seen["recursion_desired"] and not seen["checking_disabled"]
    assert seen["message"][:2] == seen["id"].to_bytes(2, "big")
    assert seen["state"] == {}


def test_a_reply_has_the_scope_that_code_says_or_that_of_what_it_looked_at(app, serve):
    calls = []

    @app.handle("*.example")
    def look(query, reply):
        calls.append(query.name)
        reply.answer(zonda.TXT("x"))
        match query.name:
            case "looks.example.":
                assert query.client_subnet is not None
            case "logs.example.":
                assert query.client
                reply.client_subnet_scope(0)
            case "says.example.":
                reply.client_subnet_scope(16)
                reply.cache(60)
            case "wrong.example.":
                for bits in (129, 256):
                    with pytest.raises(ValueError, match="from 0 to 128, not [12]"):
                        reply.client_subnet_scope(bits)

    async def scenario(client):
        async def scope(name, octets):
            option = dns.edns.GenericOption(8, bytes([0, 1, 24, 0, *octets]))
            query = dns.message.make_query(name, "TXT", options=[option])
            reply = dns.message.from_wire(await client.app.query_message(query.to_wire()))
            (told,) = [option for option in reply.options if option.otype == 8]
            assert (told.address, told.srclen) == (".".join(map(str, octets)) + ".0", 24)
            return told.scopelen

        assert await scope("blind.example", [192, 0, 2]) == 0
        assert await scope("wrong.example", [192, 0, 2]) == 0
        assert await scope("looks.example", [192, 0, 2]) == 24
        assert await scope("logs.example", [192, 0, 2]) == 0
        calls.clear()
        for octets in ([192, 0, 2], [192, 0, 7], [192, 1, 2], [192, 0, 2]):
            assert await scope("says.example", octets) == 16
        assert len(calls) == 2, "it is kept for each network of 16 bits"

    serve(app, scenario)


def test_an_answer_of_the_zone_has_the_scope_of_what_middleware_looked_at(app, serve):
    @app.middleware
    async def look(query, reply, next):
        if query.name.startswith("says"):
            reply.client_subnet_scope(20)
        if query.name != "blind.zone.":
            assert query.client
        await next()
        if query.name == "changed.zone.":
            reply.additional(zonda.TXT("x"))

    app.zone("zone", text="@ 60 SOA a a 1 2 3 4 5\n@ NS a\n* TXT x\n")

    async def scenario(client):
        async def scope(name):
            option = dns.edns.ECSOption("192.0.2.0", 24)
            query = dns.message.make_query(name, "TXT", options=[option])
            reply = dns.message.from_wire(await client.app.query_message(query.to_wire()))
            assert reply.answer
            return next(option.scopelen for option in reply.options if option.otype == 8)

        assert await scope("blind.zone") == 0
        assert await scope("looks.zone") == 24
        assert await scope("changed.zone") == 24
        assert await scope("says.zone") == 20

    serve(app, scenario)


def test_a_network_is_read_and_an_option_that_holds_none_is_a_format_error(app, serve):
    @app.handle("a.example")
    def look(query, reply):
        reply.answer(zonda.TXT(str(query.client_subnet)))
        reply.cache(60, vary="subnet")

    async def scenario(client):
        for octets, expected in [
            ([0, 1, 24, 0, 192, 0, 2], "192.0.2.0/24"),
            ([0, 1, 23, 0, 192, 0, 2], "192.0.2.0/23"),
            ([0, 2, 56, 0, 0x20, 1, 0xD, 0xB8, 0, 0, 1], "2001:db8:0:100::/56"),
            ([0, 1, 24], None),
            ([0, 7, 24, 0, 192, 0, 2], None),
            ([0, 1, 99, 0, 192, 0, 2, 1], None),
            ([0, 1, 24, 0, 192, 0], None),
            ([0, 1, 23, 0, 192, 0, 3], None),
        ]:
            option = dns.edns.GenericOption(8, bytes(octets))
            query = dns.message.make_query("a.example", "TXT", options=[option])
            reply = dns.message.from_wire(await client.app.query_message(query.to_wire()))
            if expected is None:  # a format error (rfc7871#7.1.2)
                assert (reply.rcode(), reply.answer) == (dns.rcode.FORMERR, []), octets
            else:
                assert reply.answer[0][0].strings == (expected.encode(),), octets

    serve(app, scenario)


def test_many_queries_that_wait_wait_together(serve):
    app = zonda.App(listen=["127.0.0.1:0"], workers=1, deadline=60)

    @app.handle("*.example")
    async def slow(query, reply):
        await asyncio.sleep(0.2)
        reply.answer(zonda.TXT(query.name))

    async def scenario(client):
        asked = time.monotonic()
        names = [f"n{number}.example." for number in range(600)]
        replies = await asyncio.gather(*(client.app.query(name, "TXT") for name in names))
        assert [reply.answers[0].txts for reply in replies] == [(name,) for name in names]
        assert time.monotonic() - asked < 60, "one after the other, it would be 120 s"

    serve(app, scenario)


def test_more_queries_than_may_wait_are_servfail(serve):
    app = zonda.App(listen=["127.0.0.1:0"], workers=1, waiting_max=2)
    gate = None

    @app.handle("*.example")
    async def wait(query, reply):
        await gate.wait()
        reply.no_data()

    async def scenario(client):
        nonlocal gate
        gate = asyncio.Event()
        waiting = [asyncio.create_task(client.app.query(f"{name}.example")) for name in "ab"]
        await asyncio.sleep(0.05)
        assert (await client.app.query("c.example")).rcode == "SERVFAIL"
        gate.set()
        assert [(await task).rcode for task in waiting] == ["NOERROR", "NOERROR"]

    serve(app, scenario)


def test_timeouts_and_task_groups_work_from_the_first_step_on(app, serve):
    if not hasattr(asyncio, "timeout"):
        pytest.skip("Python 3.10 has neither")

    @app.handle("timeout.example")
    async def timeout(query, reply):
        try:
            async with asyncio.timeout(0.05):
                await asyncio.sleep(10)
        except TimeoutError:
            reply.answer(zonda.TXT("timed out"))

    @app.handle("group.example")
    async def group(query, reply):
        async with asyncio.TaskGroup() as tasks:
            one = tasks.create_task(asyncio.sleep(0.01, "one"))
            two = tasks.create_task(asyncio.sleep(0.01, "two"))
        reply.answer(zonda.TXT(one.result(), two.result()))

    @app.handle("same.example")
    async def same(query, reply):
        before = asyncio.current_task()
        await asyncio.sleep(0)
        reply.answer(zonda.TXT(str(before is asyncio.current_task())))

    @app.handle("cancels.example")
    async def cancels(query, reply):
        asyncio.current_task().cancel()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            reply.answer(zonda.TXT("cancelled"))

    async def scenario(client):
        for name, text in [
            ("timeout", '"timed out"'),
            ("group", '"one" "two"'),
            ("same", '"True"'),
            ("cancels", '"cancelled"'),
            ("timeout", '"timed out"'),
        ]:
            assert (await client.told(f"{name}.example", "TXT")).endswith(text), name

    serve(app, scenario)


def test_each_query_has_a_context_of_its_own_which_outlasts_waiting(app, serve):
    variable = contextvars.ContextVar("variable", default="unset")

    @app.handle("*.example")
    async def handler(query, reply):
        before = variable.get()
        variable.set(query.name)
        if query.name.startswith("waits"):
            await asyncio.sleep(0.01)
        reply.answer(zonda.TXT(before, variable.get()))

    async def scenario(client):
        for name in ("a", "b", "waits", "c"):
            reply = await client.app.query(f"{name}.example", "TXT")
            assert reply.answers[0].txts == ("unset", f"{name}.example."), name

    serve(app, scenario)


def test_handlers_are_replaced_and_removed_however_their_pattern_is_written(app, serve):
    app.add_handler("Live.Example./TXT|A", lambda query, reply: zonda.A("192.0.2.1"))

    async def scenario(client):
        app.add_handler("live.example", lambda query, reply: zonda.A("192.0.2.2"), ["A", "TXT"])
        assert (await client.told("live.example")).endswith("192.0.2.2")
        assert app.remove_handler("LIVE.example", types="TXT|A") is True
        assert await client.told("live.example") == "REFUSED"
        assert app.remove_handler("live.example", ["TXT", "A"]) is False
        with pytest.raises(ValueError, match="route"):
            app.remove_handler("a..b")

    serve(app, scenario)


def test_records_that_are_added_to_what_was_read_of_a_reply_are_an_error_and_not_lost(app, serve):
    told = []

    @app.handle("a.example")
    def a(query, reply):
        for section in (reply.answers, reply.authorities, reply.additionals):
            with pytest.raises(AttributeError, match="append"):
                section.append(zonda.A("192.0.2.1"))
            told.append(section)
        reply.answers = [*reply.answers, zonda.A("192.0.2.2")]

    async def scenario(client):
        assert (await client.told("a.example")).endswith("192.0.2.2")
        assert told == [(), (), ()]

    serve(app, scenario)


def test_handlers_are_replaced_while_the_app_runs(app, serve):
    app.add_handler("a.example", lambda query, reply: zonda.A("192.0.2.1"))

    async def scenario(client):
        assert (await client.told("a.example")).endswith("192.0.2.1")
        app.add_handler("a.example", lambda query, reply: zonda.A("192.0.2.2"))
        assert (await client.told("a.example")).endswith("192.0.2.2")
        app.add_handler("b.example", lambda query, reply: [zonda.A("192.0.2.3")], types="A")
        assert (await client.told("b.example")).endswith("192.0.2.3")
        app.remove_handler("a.example")
        assert await client.told("a.example") == "REFUSED"
        assert app.remove_handler("a.example") is False

    serve(app, scenario)


def test_kept_replies_are_given_again_without_the_handler(app, serve):
    calls = []

    @app.handle("*.example")
    def counts(query, reply):
        calls.append(query.name)
        kind = query.name.split(".")[0]
        if kind in ("looks", "varies"):
            assert query.client
        getattr(query, kind, None)
        reply.cache(60, vary="client" if kind == "varies" else None)
        reply.answer(zonda.TXT(str(len(calls))))

    async def scenario(client):
        looks = ["original_name", "client_port", "transport", "id", "message", "recursion_desired"]
        looks += ["udp_size", "options", "client_subnet", "cookie"]
        counts = [("kept", 1), ("looks", 3), ("varies", 1), ("name", 1), ("type", 1)]
        for kind, count in counts + [(look, 3) for look in looks]:
            calls.clear()
            for _ in range(3):
                await client.told(f"{kind}.example", "TXT")
            assert len(calls) == count, kind
        with pytest.raises(ValueError, match="vary"):
            (await client.app.query("kept.example")).cache(1, "everybody")

    serve(app, scenario)


def test_tags_are_in_the_query_log(tmp_path, serve):
    log, config = tmp_path / "queries.json", tmp_path / "zonda.toml"
    config.write_text(
        f'version = 1\n[[listen]]\naddress = "127.0.0.1:0"\n'
        f'[query-log]\noutput = "{log}"\nformat = "json"\n'
    )
    app = zonda.App(config=config, workers=1)

    @app.middleware
    async def stage(query, reply, call_next):
        reply.tag("stage", "middleware")
        reply.tag("user", "nobody")
        await call_next()

    @app.handle(":user.example/TXT")
    async def user(query, reply, user):
        reply.tag("user", user)
        reply.tag("count", 5)
        reply.tag("reply", reply)  # whose text is that of the reply
        return zonda.TXT(user)

    async def scenario(client):
        await client.told("ann.example", "TXT")
        with pytest.raises(TypeError):
            reply = await app.query("a.example")
            reply.tag(5, "x")

    serve(app, scenario)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    tags = {line["name"]: line["tags"] for line in lines if "tags" in line}
    assert tags["ann.example."] == {
        "stage": "middleware",
        "user": "ann",
        "count": "5",
        "reply": "<zonda.Reply left to the zones>",
    }


def test_params_are_the_captures(app, serve):
    @app.handle(":host.:user.example/TXT")
    def both(query, reply):
        assert query.params == query.captures
        return zonda.TXT("{host} of {user}".format(**query.params))

    async def scenario(client):
        reply = await app.query("www.Ann.example", "TXT")
        assert reply.of(zonda.TXT)[0].txts == ("www of ann",)

    serve(app, scenario)


def test_a_reply_cannot_be_changed_once_it_is_sent(app, serve):
    kept = []

    @app.handle("a.example")
    def keep(query, reply):
        reply.no_data()
        kept.append(reply)

    async def scenario(client):
        assert await client.told("a.example") == "NOERROR"
        with pytest.raises(RuntimeError, match="sent"):
            kept[0].answer(zonda.A("192.0.2.1"))

    serve(app, scenario)


def test_a_pattern_that_is_none_is_told_where_it_is_written(app):
    for pattern, types in [("a.*.example", None), ("example", ["BOGUS"]), ("", None)]:
        with pytest.raises(ValueError, match="route"):
            app.handle(pattern, types=types)


# What a Python would be like that has no way for C code to make a task the current one.
WITHOUT_STEPS = """
import asyncio.tasks, sys
del asyncio.tasks._enter_task, asyncio.tasks._leave_task
import pytest
from zonda import serving
assert not serving._TAKES_STEPS
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def test_where_coroutines_take_no_step_outside_of_a_task_they_answer_all_the_same():
    files = [str(Path(__file__)), str(Path(__file__).with_name("test_middleware.py"))]
    chosen = "asyncio and (middleware or sync_and or exception or cut_off or groups or context)"
    command = [*python(), "-c", WITHOUT_STEPS, *files, "-k", chosen]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment()
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
