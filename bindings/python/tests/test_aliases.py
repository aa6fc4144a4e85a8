"""Aliases whose targets handlers answer for."""

from __future__ import annotations

import asyncio

import dns.exception
import dns.flags
import dns.rdatatype
import pytest

import zonda

# A zone whose aliases lead to names that handlers have, and to one of the zone.
ZONE = """\
@ 60 SOA ns.example.org. h.example.org. 7 2 3 4 5
@ 60 NS ns
ns 60 A 192.0.2.9
to-here 60 CNAME here.test.
to-later 60 CNAME later.test.
to-user 60 CNAME ann.users
to-chain 60 CNAME first.test.
to-absent 60 CNAME absent.test.
to-ns 60 CNAME ns
to-failed 60 CNAME failed.test.
to-passed 60 CNAME a.passed.test.
to-left 60 CNAME left.test.
to-loop 60 CNAME loop.test.
to-dropped 60 CNAME dropped.test.
below 60 DNAME test.
"""


@pytest.fixture
def app(app):
    """An app with the zone, and handlers for the targets of its aliases."""
    app.zone("example.org", text=ZONE)

    @app.handle("later.test")
    async def later(query, reply):
        await asyncio.sleep(0)
        return zonda.A("192.0.2.2", ttl=60)

    @app.handle("second.test")
    async def second(query, reply):
        return zonda.CNAME("to-later.example.org", ttl=60)

    for pattern, handler in {
        "here.test": lambda query, reply: zonda.A("192.0.2.1", ttl=60),
        ":user.users.example.org": lambda query, reply: zonda.TXT(query.captures["user"], ttl=60),
        "first.test": lambda query, reply: zonda.CNAME("second.test", ttl=60),
        "absent.test": lambda query, reply: reply.nxdomain(ttl=30),
        "failed.test": lambda query, reply: reply.servfail("the database is away"),
        "a.passed.test": lambda query, reply: reply.pass_on(),
        "*.passed.test": lambda query, reply: zonda.A("192.0.2.4", ttl=60),
        "left.test": lambda query, reply: reply.pass_on(),
        "loop.test": lambda query, reply: zonda.CNAME("to-loop.example.org", ttl=60),
        "dropped.test": lambda query, reply: reply.drop(),
    }.items():
        app.add_handler(pattern, handler)
    return app


def test_a_reply_has_an_alias_and_what_the_handler_says_of_its_target(app, serve):
    async def scenario(client):
        later = "60 CNAME later.test. | later.test. 60 A 192.0.2.2"
        for name, answer in {
            "to-here": "60 CNAME here.test. | here.test. 60 A 192.0.2.1",
            "to-later": later,
            "to-passed": "60 CNAME a.passed.test. | a.passed.test. 60 A 192.0.2.4",
            "to-ns": "60 CNAME ns.example.org. | ns.example.org. 60 A 192.0.2.9",
            "to-chain": "60 CNAME first.test. | first.test. 60 CNAME second.test. | "
            f"second.test. 60 CNAME to-later.example.org. | to-later.example.org. {later}",
        }.items():
            owner = f"{name}.example.org"
            assert await client.told(owner) == f"NOERROR | {owner}. {answer}"
        user = '60 CNAME ann.users.example.org. | ann.users.example.org. 60 TXT "ann"'
        owner = "to-user.example.org"
        assert await client.told(owner, "TXT") == f"NOERROR | {owner}. {user}"
        below = "below.example.org. 60 DNAME test. | later.below.example.org."
        assert await client.told("later.below.example.org") == f"NOERROR | {below} {later}"

    serve(app, scenario)


def test_the_response_code_behind_an_alias_is_that_of_the_handler_for_its_target(app, serve):
    async def scenario(client):
        for name, rcode, rest in [
            ("to-absent", "NXDOMAIN", "absent.test."),
            ("to-failed", "SERVFAIL", "failed.test."),
            ("to-left", "NOERROR", "left.test."),  # no zone has the name
            ("to-loop", "NOERROR", "loop.test. | loop.test. 60 CNAME to-loop.example.org."),
        ]:
            owner = f"{name}.example.org"
            assert await client.told(owner) == f"{rcode} | {owner}. 60 CNAME {rest}"
        absent = await client.ask("to-absent.example.org")
        assert absent.flags & dns.flags.AA
        assert [(it.rdtype, it.ttl) for it in absent.authority] == [(dns.rdatatype.SOA, 30)]
        with pytest.raises(dns.exception.Timeout):
            await client.ask("to-dropped.example.org", timeout=0.4)

    serve(app, scenario)


def test_middleware_sees_the_target_of_an_alias_as_it_sees_a_query(app, serve):
    seen = []

    @app.middleware
    async def note(query, reply, call_next):
        await call_next()
        seen.append(f"{query.name} {len(reply.answers)}")

    async def scenario(client):
        reply = await app.query("to-later.example.org")
        assert [record.rtype for record in reply.answers] == ["CNAME", "A"]
        assert seen == ["later.test. 1", "to-later.example.org. 2"]

    serve(app, scenario)
