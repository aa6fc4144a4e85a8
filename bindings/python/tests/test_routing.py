"""Routers, middleware for some names, and negative answers that resolvers cache."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

import zonda

ZONE = "@ 60 SOA ns.zone.test. h.zone.test. 7 2 3 4 5\n@ 60 NS a\na 60 A 192.0.2.3\n"


async def said(app, name, rtype="A"):
    """The response code and the addresses of a reply."""
    reply = await app.query(name, rtype)
    return " ".join([reply.rcode, *(record.ip for record in reply.of(zonda.A))])


def test_a_router_has_the_names_below_a_suffix(app, serve):
    passed = []
    eu = app.route("eu.example")

    @eu.handle("www")
    def www(query, reply):
        return zonda.A("192.0.2.1")

    @eu.handle("@", ["A"])
    def apex(query, reply):
        return zonda.A("192.0.2.2")

    @eu.handle(":user.users/A")
    def user(query, reply):
        return zonda.A(f"192.0.2.{query.captures['user']}")

    @eu.middleware
    async def note(query, reply, call_next):
        passed.append(query.name)
        await call_next()

    inner = eu.route("inner")
    inner.add_handler("*", lambda query, reply: zonda.A("192.0.2.4"))

    async def scenario(client):
        async def ip(name):
            return [record.ip for record in (await app.query(name)).of(zonda.A)]

        assert await ip("www.eu.example") == ["192.0.2.1"]
        assert await ip("eu.example") == ["192.0.2.2"]
        assert await ip("3.users.eu.example") == ["192.0.2.3"]
        assert await ip("a.b.inner.eu.example") == ["192.0.2.4"]
        assert (await app.query("www.us.example")).rcode == "REFUSED"
        names = ["www.eu", "eu", "3.users.eu", "a.b.inner.eu"]
        assert passed == [f"{name}.example." for name in names]
        assert inner.remove_handler("*") is True
        assert await ip("a.b.inner.eu.example") == []
        assert inner.remove_handler("*") is False

    serve(app, scenario)
    for suffix in ["a..b", "*.example", "*", ".", "eu.example/A"]:
        with pytest.raises(zonda.PatternError):
            app.route(suffix)
    with pytest.raises(zonda.PatternError, match=r"leave `\*\.` out of the suffix"):
        eu.route("*")


def test_labels_that_a_pattern_captures_are_arguments(app, serve):
    @app.handle(":host.:user.example/TXT")
    async def both(query, reply, user, *, host):
        return zonda.TXT(f"{host} of {user}")

    @app.handle(":user.short.example/TXT")
    def one(query, reply, user="nobody"):
        return zonda.TXT(user)

    @app.handle("*.:site.wide.example/TXT")
    def wider(query, reply, *more, site):
        return zonda.TXT(f"{site} {len(more)}")

    @app.handle(":user.first.example/TXT")
    async def first(user, query, reply):
        return zonda.TXT(f"{user} asks for {query.name}")

    @app.handle(":host.:user.mixed.example/TXT")
    def mixed(reply, host, q, *, user, wait=0):
        reply.answer(zonda.TXT(f"{host} {user} {q.type}"))

    @app.middleware(":user.first.example")
    def not_mallory(call_next, user, reply, query):
        return reply.refused() if user == "mallory" else call_next()

    @app.middleware(":user.short.example")
    async def known(query, reply, call_next, user):
        await call_next() if user != "eve" else reply.refused()

    app.route("router.example").add_handler(":a", lambda query, reply, a: zonda.TXT(f"<{a}>"))

    async def scenario(client):
        async def text(name):
            reply = await app.query(name, "TXT")
            return " ".join([reply.rcode, *(it.text.strip('"') for it in reply.of(zonda.TXT))])

        assert await text("www.Ann.example") == "NOERROR www of ann"
        assert await text("ann.short.example") == "NOERROR ann"
        assert await text("eve.short.example") == "REFUSED"
        assert await text("a.b.paris.wide.example") == "NOERROR paris 0"
        assert await text("x.router.example") == "NOERROR <x>"
        assert await text("ann.first.example") == "NOERROR ann asks for ann.first.example."
        assert await text("mallory.first.example") == "REFUSED"
        assert await text("www.ann.mixed.example") == "NOERROR www ann TXT"

    serve(app, scenario)


def test_a_router_answers_for_errors_below_its_suffix_before_the_app_does(app, serve):
    def raises(query, reply):
        raise KeyError(query.name)

    def says(text):
        return lambda error, query, reply: zonda.TXT(text)

    eu = app.route("eu.example")
    west = eu.route(":country.west")
    app.on_error(KeyError)(says("app"))
    eu.on_error(says("eu"))
    west.on_error(ValueError)(says("never"))

    @west.on_error(KeyError)
    def of_west(error, query, reply):
        if query.name.startswith("left"):
            return None
        return zonda.TXT("west")

    for pattern in ("eu.example", "*.eu.example", "*.feu.example"):
        app.add_handler(pattern, raises)

    async def scenario(client):
        async def text(name):
            return (await app.query(name, "TXT")).of(zonda.TXT)[0].txts

        assert await text("a.feu.example") == ("app",)
        assert await text("EU.example") == ("eu",)
        assert await text("a.b.eu.example") == ("eu",)
        assert await text("www.fr.west.eu.example") == ("west",)
        assert await text("left.fr.west.eu.example") == ("eu",)

    serve(app, scenario)


@pytest.mark.parametrize(
    "function",
    [
        lambda query: None,
        lambda query, reply, usr, more: None,
        lambda query, reply, *, usr: None,
        lambda query, reply, user, more, /: None,
        lambda: None,
    ],
)
def test_a_function_that_cannot_be_called_for_a_pattern_is_told_when_it_is_added(app, function):
    with pytest.raises(TypeError, match=r"the handler .* is called with \(query, reply, user\)"):
        app.handle(":user.example")(function)
    with pytest.raises(TypeError, match=r"is called with \(query, reply\)$"):
        app.add_handler("user.example", function)
    with pytest.raises(TypeError, match=r"the middleware .* \(query, reply, call_next\)$"):
        app.middleware(function)


def test_a_function_of_a_capture_that_leaves_out_query_or_reply_is_told_when_it_is_added(app):
    for function in (
        lambda user, query: None,
        lambda user, other: None,
        lambda *, user: None,
        lambda query, given, reply, user, /: None,
    ):
        with pytest.raises(TypeError, match=r"is called with \(query, reply, user\)"):
            app.handle(":user.example")(function)


def test_a_reply_that_a_handler_has_the_core_keep_passes_middleware_each_time(app, serve):
    passed = []

    @app.handle("db.corp.example")
    def db(query, reply):
        reply.cache(60)
        return zonda.A("192.0.2.2")

    @app.route("corp.example").middleware
    async def note(query, reply, call_next):
        passed.append(query.name)
        await call_next()

    async def scenario(client):
        for time in range(1, 4):
            assert (await client.told("db.corp.example")).endswith("192.0.2.2")
            assert len(passed) == time

    serve(app, scenario)


def test_a_name_as_long_as_names_may_be_gets_a_negative_answer_that_is_cached(app, serve):
    @app.handle("*")
    def none(query, reply):
        reply.nxdomain(ttl=60)

    async def scenario(client):
        labels = ["x", "a" * 63, "b" * 63, "c" * 63, "d" * 58]
        reply = await app.query(".".join(labels))
        assert reply.rcode == "NXDOMAIN"
        assert all(isinstance(record, zonda.SOA) for record in reply.authorities)
        assert len(reply.authorities) == 1

    serve(app, scenario)


def test_middleware_for_a_pattern_is_passed_by_the_names_of_that_alone(app, serve, zone_file):
    app.zone("example.org", zone_file)
    passed = []
    app.add_handler("*.a.example", lambda query, reply: zonda.A("192.0.2.1"))
    app.add_handler("x.b.a.example", lambda query, reply: zonda.A("192.0.2.2"))

    @app.middleware("*.b.a.example/A")
    async def shorten(query, reply, call_next):
        passed.append(query.name)
        await call_next()
        reply.answers = [record.replace(ttl=7) for record in reply.answers]

    @app.middleware("a.example.org")
    def note(query, reply, call_next):
        passed.append(query.name)
        return call_next()

    async def scenario(client):
        async def ttl(name):
            return (await app.query(name)).answers[0].ttl

        assert await ttl("y.a.example") == 300
        assert await ttl("x.b.a.example") == 7
        assert (await app.query("a.example.org")).of(zonda.A)[0].ip == "192.0.2.9"
        assert (await app.query("ns.example.org")).of(zonda.A)[0].ip == "192.0.2.53"
        assert passed == ["x.b.a.example.", "a.example.org."]
        app.add_handler("a.example.org", lambda query, reply: zonda.A("192.0.2.8"))
        assert (await app.query("a.example.org")).of(zonda.A)[0].ip == "192.0.2.8"
        app.remove_handler("a.example.org")
        assert (await app.query("a.example.org")).of(zonda.A)[0].ip == "192.0.2.9"
        assert app.remove_handler("a.example.org") is False
        assert passed[2:] == ["a.example.org."] * 2

    serve(app, scenario)


def test_negative_answers_have_the_soa_record_by_which_resolvers_cache_them(app, serve):
    soa = zonda.Record("SOA", "ns.example. h.example. 1 2 3 4 30", ttl=30, owner="example")
    app.add_handler("*.users.example", lambda query, reply: reply.nxdomain(ttl=60))
    app.add_handler(":x.:y.deep.example", lambda query, reply: reply.no_data(ttl=5))
    app.add_handler("gone.exact.example", lambda query, reply: reply.nxdomain(ttl=9))
    app.add_handler("*", lambda query, reply: reply.nxdomain(ttl=1))
    app.add_handler("soa.example", lambda query, reply: reply.nxdomain(soa=soa))
    app.add_handler("plain.example", lambda query, reply: reply.nxdomain())

    async def scenario(client):
        async def told(name):
            reply = await app.query(name)
            assert all(isinstance(record, zonda.SOA) for record in reply.authorities)
            return [reply.rcode, *((it.owner, it.ttl, it.minimum) for it in reply.authorities)]

        assert await told("a.b.users.example") == ["NXDOMAIN", ("users.example.", 60, 60)]
        assert await told("a.b.deep.example") == ["NOERROR", ("deep.example.", 5, 5)]
        assert await told("gone.exact.example") == ["NXDOMAIN", ("gone.exact.example.", 9, 9)]
        assert await told("www.test") == ["NXDOMAIN", ("www.test.", 1, 1)]
        assert await told("soa.example") == ["NXDOMAIN", ("example.", 30, 30)]
        assert await told("plain.example") == ["NXDOMAIN"]

    serve(app, scenario)


def test_middleware_for_a_pattern_hides_no_handler_zone_or_other_server(app, serve):
    passed = []
    app.zone("zone.test", text=ZONE)
    app.add_handler("*.example", lambda query, reply: zonda.A("192.0.2.1"))
    app.add_handler("*.near.example", lambda query, reply: zonda.A("192.0.2.2"))
    for pattern in ["*.eu.example", "*.near.example", "*.zone.test", "only.test"]:

        @app.middleware(pattern)
        def note(query, reply, call_next, pattern=pattern):
            passed.append(f"{pattern} {query.name} {query.pattern}")
            return call_next()

    async def scenario(client):
        assert await said(app, "www.eu.example") == "NOERROR 192.0.2.1"
        assert await said(app, "www.near.example") == "NOERROR 192.0.2.2"
        assert await said(app, "a.zone.test") == "NOERROR 192.0.2.3"
        assert await said(app, "b.zone.test") == "NXDOMAIN"
        assert await said(app, "only.test") == "REFUSED"
        assert await said(app, "eu.test") == "REFUSED"
        assert passed == [
            "*.eu.example www.eu.example. *.example",
            "*.near.example www.near.example. *.near.example",
            "*.zone.test a.zone.test. None",
            "*.zone.test b.zone.test. None",
            "only.test only.test. None",
        ]

    serve(app, scenario)


def test_middleware_for_a_pattern_sees_what_other_servers_answer(serve):
    upstream = zonda.App(listen=["127.0.0.1:0"], workers=1)
    upstream.add_handler("*", lambda query, reply: zonda.A("192.0.2.77"))
    seen = []

    async def main():
        async with upstream:
            app = zonda.App(listen=[])
            address, port = upstream.addresses[0]
            app.forward(f"{address}:{port}")

            @app.middleware("far.test")
            async def note(query, reply, call_next):
                await call_next()
                seen.append(reply.of(zonda.A)[0].ip)

            async with app:
                assert await said(app, "far.test") == "NOERROR 192.0.2.77"
                assert await said(app, "other.test") == "NOERROR 192.0.2.77"
        assert seen == ["192.0.2.77"]

    asyncio.run(main())


def test_middleware_for_all_names_is_passed_first_and_then_that_of_the_widest_pattern(app, serve):
    order = []

    def note(word):
        async def passes(query, reply, call_next):
            order.append(word)
            await call_next()
            order.append(f"{word} after")

        return passes

    app.middleware("a.b.example")(note("exact"))
    app.middleware("*.example")(note("wide"))
    app.middleware("*.example")(note("wide too"))
    app.middleware(note("all"))
    app.middleware("*.b.example")(note("close"))
    app.middleware("*.b.example/TXT")(note("TXT"))
    app.add_handler("*", lambda query, reply: zonda.A("192.0.2.1"))

    async def scenario(client):
        assert await said(app, "a.b.example") == "NOERROR 192.0.2.1"
        words = ["all", "wide", "wide too", "close", "exact"]
        assert order == [*words, *(f"{word} after" for word in reversed(words))]
        order.clear()
        app.middleware("*.b.example")(note("late"))
        app.middleware("new.example")(note("new"))
        await app.query("new.example")
        assert order[:4] == ["all", "wide", "wide too", "new"]
        order.clear()
        await app.query("c.b.example")
        assert order[:5] == ["all", "wide", "wide too", "close", "late"]

    serve(app, scenario)


def test_many_functions_of_middleware_are_passed_one_behind_the_other(app, serve):
    passed = []

    def fails(query, reply, call_next):
        raise AssertionError("it is for other names")

    for number in range(500):
        app.route(f"r{number}.test").middleware(fails)

        @app.middleware("*.example")
        async def deep(query, reply, call_next):
            passed.append(query.name)
            await call_next()

        @app.middleware("*.flat")
        def flat(query, reply, call_next):
            passed.append(query.name)
            return call_next()

    @app.handle("*")
    async def answers(query, reply):
        await asyncio.sleep(0)
        return zonda.A("192.0.2.1")

    async def scenario(client):
        for name, count in [("a.example", 500), ("a.flat", 500), ("r.test", 0)]:
            passed.clear()
            assert await said(app, name) == "NOERROR 192.0.2.1"
            assert len(passed) == count

    serve(app, scenario)


def test_a_query_that_a_handler_leaves_goes_to_that_of_the_next_wider_pattern(app, serve):
    calls = []
    app.zone("zone.example", text=ZONE)

    @app.handle("*.example")
    def wide(query, reply):
        calls.append(f"wide {query.pattern}")
        if not query.name.endswith("zone.example."):
            reply.answer(zonda.A("192.0.2.1"))

    @app.handle(":x.b.example")
    async def captured(query, reply):
        await asyncio.sleep(0)
        calls.append(f"captured {query.captures['x']}")
        reply.pass_on()

    @app.handle("a.b.example")
    def exact(query, reply):
        calls.append("exact")

    @app.handle("a.b.example", ["A"])
    async def exact_a(query, reply):
        await asyncio.sleep(0)
        calls.append("exact A")

    app.add_handler("a.zone.example", lambda query, reply: None)

    async def scenario(client):
        order = ["exact A", "exact", "captured a", "wide *.example"]
        for end in [[], ["all"], ["a", "all"]]:
            assert await said(app, "a.b.example") == "NOERROR 192.0.2.1"
            assert calls == [*order, *end]
            calls.clear()
            assert await said(app, "a.zone.example") == "NOERROR 192.0.2.3"
            assert calls[0] == "wide *.example"
            calls.clear()

            async def note(query, reply, call_next, word="a" if end else "all"):
                await call_next()
                calls.append(word)

            if end:
                app.middleware("a.b.example")(note)
            else:
                app.middleware(note)

    serve(app, scenario)


def test_a_kept_reply_is_not_given_instead_of_asking_a_closer_handler(app, serve):
    calls = []

    @app.handle("*.example")
    def wide(query, reply):
        reply.cache(60)
        return zonda.A("192.0.2.1")

    app.add_handler("a.example", lambda query, reply: calls.append(query.name))

    async def scenario(client):
        for time in range(1, 4):
            assert await said(app, "a.example") == "NOERROR 192.0.2.1"
            assert len(calls) == time

    serve(app, scenario)


def test_queries_under_way_for_a_removed_handler_pass_all_middleware_and_the_next_handler(serve):
    app = zonda.App(listen=["127.0.0.1:0"], workers=1)
    passed = []

    @app.middleware
    async def everything(query, reply, call_next):
        passed.append(f"all {query.name}")
        await call_next()

    @app.middleware("*.guarded.example")
    async def guarded(query, reply, call_next):
        passed.append(f"guard {query.name}")
        await call_next()

    app.add_handler("*.example", lambda query, reply: zonda.A("192.0.2.1"))

    async def scenario(client):
        for name in ["a.example", "a.guarded.example"]:
            for guarded in [True, False]:
                app.add_handler(name, lambda query, reply: zonda.A("192.0.2.9"))
                asked = asyncio.ensure_future(app.query(name))
                await asyncio.sleep(0)  # the query is under way
                app.remove_handler(name)
                reply = await asked
                assert [record.ip for record in reply.of(zonda.A)] == ["192.0.2.1"]
                guard = [f"guard {name}."] if "guarded" in name else []
                assert passed == [f"all {name}.", *guard]
                passed.clear()

    serve(app, scenario)


def test_a_denial_behind_call_next_takes_the_place_of_the_answer_but_for_aliases(app, serve):
    app.zone("zone.test", text=f"{ZONE}alias 60 CNAME a\n")

    @app.middleware("*.zone.test")
    async def denies(query, reply, call_next):
        await call_next()
        if query.name.startswith("plain."):
            reply.nxdomain()
        elif query.name.startswith("alias."):
            reply.no_data(ttl=9)
        else:
            reply.nxdomain(ttl=8)

    @app.handle("many.test")
    def many(query, reply):
        reply.answer(zonda.A("192.0.2.1"))
        reply.authority(zonda.Record("SOA", "a.test. b.test. 1 2 3 4 5", ttl=3, owner="test"))
        reply.additional(zonda.A("192.0.2.2"))
        reply.nxdomain()

    async def scenario(client):
        async def told(name, rtype="A"):
            reply = await app.query(name, rtype)
            sections = [reply.answers, reply.authorities, reply.additionals]
            words = [[f"{it.owner} {it.rtype} {it.ttl}" for it in part] for part in sections]
            return [reply.rcode, *words]

        assert await told("a.zone.test") == ["NXDOMAIN", [], ["zone.test. SOA 8"], []]
        assert await told("b.zone.test") == ["NXDOMAIN", [], ["zone.test. SOA 8"], []]
        assert await told("plain.zone.test") == ["NXDOMAIN", [], ["zone.test. SOA 5"], []]
        alias = ["NOERROR", ["alias.zone.test. CNAME 60"], ["zone.test. SOA 9"], []]
        assert await told("alias.zone.test") == alias
        assert await told("alias.zone.test", "CNAME") == ["NOERROR", [], ["zone.test. SOA 9"], []]
        assert await told("many.test") == ["NXDOMAIN", [], ["test. SOA 3"], []]

    serve(app, scenario)


def test_the_soa_record_of_a_negative_answer_is_that_of_the_zone_that_holds_the_name(app, serve):
    app.zone("zone.test", text=ZONE)
    app.forward("192.0.2.53")
    app.add_handler("*.users.zone.test", lambda query, reply: reply.nxdomain(ttl=60))
    app.add_handler("zone.test/TXT", lambda query, reply: reply.no_data(ttl=61))
    app.add_handler("only.test", lambda query, reply: reply.no_data(ttl=62))

    async def scenario(client):
        async def soa(name, rtype="A"):
            records = (await app.query(name, rtype)).authorities
            return [(it.owner, it.ttl, it.mname, it.serial, it.minimum) for it in records]

        expected = [("zone.test.", 60, "ns.zone.test.", 7, 60)]
        assert await soa("a.users.zone.test") == expected
        assert await soa("zone.test", "TXT") == [("zone.test.", 61, "ns.zone.test.", 7, 61)]
        assert await soa("only.test") == [("only.test.", 62, "only.test.", 1, 62)]

    serve(app, scenario)


# A program whose handlers come and go, and which prints how much memory it takes, KiB, as time passes.
REPLACES = """
import asyncio, re, zonda
from pathlib import Path

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

async def main():
    app = zonda.App(listen=[], workers=1)
    async with app:
        for turn in range(4):
            for number in range(5_000):
                name = f"n{number}.{'x' * 60}.{'y' * 60}.{'z' * 60}.example"
                app.add_handler(name, lambda query, reply: None)
                app.remove_handler(name)
            print(resident(), flush=True)

asyncio.run(main())
"""


@pytest.mark.once
def test_handlers_that_come_and_go_leave_no_patterns_behind():
    command = [sys.executable, "-c", REPLACES]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    first, *_, last = map(int, told.stdout.split())
    assert last <= first + 4096, told.stdout


def test_middleware_for_a_pattern_has_what_its_own_pattern_captures(app, serve):
    seen = []

    def note(query):
        seen.append((query.pattern, dict(query.captures)))

    @app.middleware
    async def all_queries(query, reply, call_next):
        await call_next()
        note(query)

    @app.middleware("*.:tenant.example")
    async def guard(query, reply, call_next):
        note(query)
        await call_next()
        note(query)

    @app.middleware(":user.corp.test")
    def another(query, reply, call_next):
        note(query)
        return call_next()

    @app.handle(":tenant.:site.example")
    async def handler(query, reply):
        note(query)
        await asyncio.sleep(0)
        note(query)
        return zonda.A("192.0.2.1")

    async def scenario(client):
        await app.query("a.b.example")
        pattern = ":tenant.:site.example"
        of_guard = (pattern, {"tenant": "b"})
        of_handler = (pattern, {"tenant": "a", "site": "b"})
        assert seen == [of_guard, of_handler, of_handler, of_guard, of_handler]
        seen.clear()
        await app.query("ann.corp.test")
        assert seen == [(None, {"user": "ann"}), (None, {})]

    serve(app, scenario)


@pytest.mark.parametrize("guarded", [False, True])
def test_what_a_handler_has_added_before_it_leaves_a_query_is_not_sent(app, serve, guarded):
    @app.handle("a.example")
    def close(query, reply):
        reply.answer(zonda.A("192.0.2.1"))
        reply.refused()
        reply.extended_error("Blocked")
        reply.pass_on()

    @app.handle("*.example")
    def wide(query, reply):
        reply.answer(zonda.A("192.0.2.2"))

    if guarded:
        app.middleware("*.example")(lambda query, reply, call_next: call_next())

    async def scenario(client):
        assert await said(app, "a.example") == "NOERROR 192.0.2.2"

    serve(app, scenario)
