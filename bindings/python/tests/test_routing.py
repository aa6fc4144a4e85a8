"""Routers, middleware for some names, and negative answers that resolvers cache."""

from __future__ import annotations

import pytest

import zonda


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
        inner.remove_handler("*")
        assert await ip("a.b.inner.eu.example") == []
        with pytest.raises(KeyError):
            inner.remove_handler("*")

    serve(app, scenario)
    with pytest.raises(zonda.PatternError):
        app.route("a..b")


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
        with pytest.raises(KeyError):
            app.remove_handler("a.example.org")
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
        assert await told("gone.exact.example") == ["NXDOMAIN", ("exact.example.", 9, 9)]
        assert await told("www.test") == ["NXDOMAIN", ("test.", 1, 1)]
        assert await told("soa.example") == ["NXDOMAIN", ("example.", 30, 30)]
        assert await told("plain.example") == ["NXDOMAIN"]

    serve(app, scenario)
