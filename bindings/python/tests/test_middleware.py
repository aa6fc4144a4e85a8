"""Middleware, around handlers, zones and other servers."""

from __future__ import annotations

import asyncio
import contextlib

import dns.flags

import zonda


def test_middleware_wraps_handlers_zones_and_names_that_nobody_has(app, serve, zone_file):
    app.zone("example.org", zone_file)
    order = []

    @app.middleware
    async def outer(query, reply, call_next):
        order.append("outer before")
        await call_next()
        order.append(f"outer after {reply.rcode} {len(reply.answers)}")

    @app.middleware
    def inner(query, reply, call_next):
        order.append("inner")
        return call_next()

    @app.handle("handled.example")
    async def handler(query, reply):
        order.append("handler")
        await asyncio.sleep(0)
        reply.answer(zonda.A("192.0.2.1"))

    async def scenario(client):
        for name, told, steps in [
            ("handled.example", "NOERROR | handled.example. 300 A 192.0.2.1", ["handler"]),
            ("a.example.org", "NOERROR | a.example.org. 300 A 192.0.2.9", []),
            ("none.example.org", "NXDOMAIN", []),
            ("nobody.example", "REFUSED", []),
        ]:
            order.clear()
            assert await client.told(name) == told
            rcode, answers = told.split(" |")[0], told.count("|")
            after = f"outer after {rcode} {answers}"
            assert order == ["outer before", "inner", *steps, after], name

    serve(app, scenario)


def test_an_address_that_middleware_takes_out_is_not_added_again_behind_its_alias(app, serve):
    soa = "@ 60 SOA ns host 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n"
    app.zone("example.org", text=f"{soa}www 60 CNAME host\nhost 60 A 10.0.0.7\n")

    @app.middleware
    async def without_private_addresses(query, reply, call_next):
        await call_next()
        kept = [record for record in reply.answers if record.rtype != "A"]
        reply.clear()
        for record in kept:
            reply.answer(record)

    async def scenario(client):
        alias = "NOERROR | www.example.org. 60 CNAME host.example.org."
        assert await client.told("www.example.org") == alias

    serve(app, scenario)


def test_what_the_core_answers_stays_as_it_was(app, serve, zone_file):
    app.zone("example.org", zone_file)
    plain = zonda.App(listen=["127.0.0.1:0"], workers=1)
    plain.zone("example.org", zone_file)

    @app.middleware
    async def nothing(query, reply, call_next):
        await call_next()

    async def scenario(client):
        async with plain:
            for name, rdtype in [
                ("a.example.org", "A"), ("example.org", "SOA"), ("a.example.org", "AAAA"),
                ("none.example.org", "A"), ("none.example", "A"), ("example.org", "NS"),
            ]:
                with_it = await client.ask(name, rdtype, use_edns=0)
                without = await type(client)(plain).ask(name, rdtype, use_edns=0)
                with_it.id = without.id
                assert with_it.to_text() == without.to_text(), f"{name} {rdtype}"

    serve(app, scenario)


def test_middleware_changes_replies_and_answers_in_place_of_others(app, serve, zone_file):
    app.zone("example.org", zone_file)

    @app.middleware
    async def change(query, reply, call_next):
        if query.name.startswith("blocked."):
            reply.extended_error("Blocked")
            reply.nxdomain()
            return
        query.state["tag"] = "seen"
        await call_next()
        reply.answers = [record.replace(ttl=7) for record in reply.answers]
        reply.additional(zonda.TXT("seen"))
        reply.aa = False

    @app.handle("a.example")
    def handler(query, reply):
        reply.answer(zonda.TXT(query.state["tag"]))

    async def scenario(client):
        assert await client.told("blocked.example.org") == "NXDOMAIN"
        assert await client.told("a.example", "TXT") == 'NOERROR | a.example. 7 TXT "seen"'
        reply = await client.ask("a.example.org")
        assert str(reply.answer[0]) == "a.example.org. 7 IN A 192.0.2.9"
        assert str(reply.additional[0]) == 'a.example.org. 300 IN TXT "seen"'
        assert not reply.flags & dns.flags.AA

    serve(app, scenario)


def test_middleware_that_decides_nothing_fails_and_opens_nothing(app, serve, zone_file, caplog):
    app.zone("example.org", zone_file)
    app.handle("*.example")(lambda query, reply: zonda.A("192.0.2.1"))

    @app.middleware("a.example.org")
    async def allowed(query, reply, call_next):
        if query.client == "192.0.2.7":
            await call_next()

    @app.middleware
    def passed(query, reply, call_next):
        if query.name != "passed.example.":
            return call_next()
        reply.pass_on()

    @app.middleware("lost.example")
    async def lost(query, reply, call_next):
        call_next().close()

    @app.middleware("early.example")
    async def early(query, reply, call_next):
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(call_next(), 0)

    @app.middleware("b.example.org")
    async def suppresses(query, reply, call_next):
        with contextlib.suppress(LookupError):
            await call_next()

    @app.handle("b.example.org")
    def fails(query, reply):
        raise LookupError("not allowed")

    @app.middleware("caught.example")
    async def catches(query, reply, call_next):
        with contextlib.suppress(LookupError):
            await call_next()

    @app.middleware("caught.example")
    async def raises(query, reply, call_next):
        raise LookupError("not allowed")

    async def scenario(client):
        assert await client.told("a.example.org") == "SERVFAIL"
        inside = await app.query("a.example.org", client="192.0.2.7")
        assert inside.rcode == "NOERROR"
        assert await client.told("passed.example") == "SERVFAIL"
        for name in ["lost.example", "early.example", "b.example.org", "caught.example"]:
            assert await client.told(name) == "SERVFAIL", name
        assert (await client.told("other.example")).startswith("NOERROR")

    serve(app, scenario)
    told = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert len(told) == 6
    why = "allowed ended without an answer, and without having waited for `call_next()`:"
    assert why in told[0]
    assert "catches ended without an answer" in told[5]
    assert "or although that failed" in told[5]


def test_middleware_sees_what_a_handler_raises(app, serve):
    @app.middleware
    async def rescue(query, reply, call_next):
        try:
            await call_next()
        except LookupError as error:
            reply.clear()
            reply.answer(zonda.TXT(str(error)))

    @app.handle("lookup.example")
    def lookup(query, reply):
        raise LookupError("no database")

    @app.handle("value.example")
    def value(query, reply):
        raise ValueError("not caught")

    async def scenario(client):
        assert (await client.told("lookup.example", "TXT")).endswith('"no database"')
        assert await client.told("value.example", "TXT") == "SERVFAIL"

    serve(app, scenario)


def test_middleware_waits_for_other_servers(serve):
    upstream = zonda.App(listen=["127.0.0.1:0"], workers=1)
    times = []

    @upstream.handle("*")
    async def answers(query, reply):
        await asyncio.sleep(0.02)
        if query.name.startswith("none."):
            reply.nxdomain()
            reply.authority(zonda.SOA("ns.a", "x.a", 1, 2, 3, 4, 5, owner="example"))
        else:
            reply.answer(zonda.A("192.0.2.77", ttl=77))

    async def main():
        async with upstream:
            app = zonda.App(listen=["127.0.0.1:0"], workers=1)
            address, port = upstream.addresses[0]
            app.forward(f"{address}:{port}")

            @app.middleware
            async def measure(query, reply, call_next):
                start = asyncio.get_running_loop().time()
                await call_next()
                times.append(asyncio.get_running_loop().time() - start)

            async with app:
                reply = await app.query("www.example")
                assert str(reply.answers[0]) == "www.example. 77 IN A 192.0.2.77"
                assert reply.ra
                assert (await app.query("none.example")).rcode == "NXDOMAIN"
        assert times[0] > 0.015

    asyncio.run(main())


def test_middleware_is_added_while_the_app_runs(app, serve):
    async def scenario(client):
        assert await client.told("a.example") == "REFUSED"

        @app.middleware
        def answers(query, reply, call_next):
            reply.answer(zonda.A("192.0.2.1"))

        assert (await client.told("a.example")).endswith("192.0.2.1")

    serve(app, scenario)
