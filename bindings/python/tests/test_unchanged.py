"""Replies that middleware leaves as they are."""

from __future__ import annotations

import asyncio
import logging
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import dns.edns
import dns.flags
import dns.message
import pytest

import zonda
from conftest import Client

# The extended error of a query that upstreams have failed to answer.
NETWORK_ERROR = 23

ZONE = "\n".join(
    [
        "$TTL 300",
        "@ SOA ns hostmaster 1 2 3 4 5",
        "@ NS ns",
        "@ MX 10 ns",
        "ns A 192.0.2.53",
        "www A 192.0.2.80",
        "alias CNAME www",
        "away CNAME www.elsewhere.test.",
        "large TXT " + " ".join(str(place) + "x" * 200 for place in range(4)),
        *(f"huge TXT {place}{'y' * 200}" for place in range(60)),
        "wide A 192.0.2.1",
        "wide AAAA 2001:db8::1",
        "",
    ]
)

QUESTIONS = [
    ("www.example.org", "A"),
    ("wWw.Example.org", "A"),
    ("www.example.org", "AAAA"),
    ("none.example.org", "A"),
    ("alias.example.org", "A"),
    ("away.example.org", "A"),
    ("example.org", "MX"),
    ("large.example.org", "TXT"),
    ("huge.example.org", "TXT"),
    ("wide.example.org", "ANY"),
    ("www.elsewhere.test", "A"),
    ("none.elsewhere.test", "A"),
]

# All that a client may say in a query, and how it may send it.
WAYS: dict[str, dict[str, Any]] = {
    "UDP without EDNS": {"use_edns": False},
    "UDP 512": {"use_edns": 0, "payload": 512},
    "UDP 1232": {"use_edns": 0, "payload": 1232},
    "UDP 4096": {"use_edns": 0, "payload": 4096},
    "UDP with DO": {"use_edns": 0, "payload": 1232, "want_dnssec": True},
    "UDP with a cookie": {"use_edns": 0, "options": [dns.edns.CookieOption(b"7" * 8, b"")]},
    "TCP": {"tcp": True, "use_edns": 0},
}


class Upstream:
    """A server whose answers must not be cached, and how often it was asked for which name."""

    def __init__(self) -> None:
        self.app = zonda.App(listen=["127.0.0.1:0"], workers=1)
        self.seen: Counter[str] = Counter()

        @self.app.handle("*")
        def answers(query: zonda.Query, reply: zonda.Reply) -> None:
            self.seen[query.name] += 1
            if query.name.startswith("fails."):
                reply.servfail()
            elif query.name.startswith("none."):
                reply.nxdomain()
                reply.authority(zonda.SOA("ns.a", "x.a", 1, 2, 3, 4, 0, owner="test", ttl=0))
            else:
                reply.answer(zonda.A("192.0.2.77", ttl=0))


def run(tmp_path: Path, scenario: Any, **options: Any) -> None:
    """Runs a scenario with an app that has the zone, in front of an upstream."""
    file = tmp_path / "example.org.zone"
    file.write_text(ZONE)

    async def main() -> None:
        upstream = Upstream()
        async with upstream.app:
            app = zonda.App(listen=["127.0.0.1:0"], workers=1, **options)
            address, port = upstream.app.addresses[0]
            app.forward(f"{address}:{port}")
            app.zone("example.org", file=file)
            async with app:
                await scenario(app, upstream)

    asyncio.run(main())


async def replies(app: zonda.App) -> dict[tuple[str, str, str], bytes]:
    """The octets of the replies to all questions in all ways, but for the number of the query and
    what a server's cookie has of the time."""
    client, found = Client(app), {}
    for way, options in WAYS.items():
        for name, rdtype in QUESTIONS:
            reply = await client.ask(name, rdtype, id=7, **options)
            octets = bytearray(reply.wire or b"")
            at = octets.find(b"7" * 8)
            if at >= 0:
                octets[at + 8 : at + 24] = bytes(16)
            found[name, rdtype, way] = bytes(octets)
    return found


async def not_looked_at(query: zonda.Query, reply: zonda.Reply, call_next: Any) -> None:
    await call_next()


async def looked_at(query: zonda.Query, reply: zonda.Reply, call_next: Any) -> None:
    await call_next()
    assert reply.is_answered and reply.rcode
    assert len(reply.answers + reply.authorities + reply.additionals) >= 0


async def written_anew_as_it_was(query: zonda.Query, reply: zonda.Reply, call_next: Any) -> None:
    await call_next()
    reply.answers = reply.answers
    reply.aa = reply.aa


async def late(query: zonda.Query, reply: zonda.Reply, call_next: Any) -> None:
    await call_next()
    await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    "middleware", [not_looked_at, looked_at, written_anew_as_it_was, late]
)
def test_a_reply_left_unchanged_is_octet_for_octet_the_one_without_middleware(
    tmp_path: Path, middleware: Any
) -> None:
    async def scenario(app: zonda.App, upstream: Upstream) -> None:
        expected = await replies(app)
        app.middleware(middleware)
        for asked, reply in (await replies(app)).items():
            assert reply.hex() == expected[asked].hex(), asked

    run(tmp_path, scenario)


def test_upstreams_are_asked_once_for_a_reply_left_unchanged(tmp_path: Path) -> None:
    async def scenario(app: zonda.App, upstream: Upstream) -> None:
        app.middleware(looked_at)
        client = Client(app)
        for name in ["www.elsewhere.test", "none.elsewhere.test", "away.example.org"]:
            upstream.seen.clear()
            await client.ask(name)
            assert list(upstream.seen.values()) == [1], name
        reply = await client.ask("fails.elsewhere.test", use_edns=0)
        [error] = reply.options
        assert error.code == NETWORK_ERROR, "not a cached error, as when it is answered once more"

    run(tmp_path, scenario)


def test_a_reply_left_unchanged_is_counted_once_as_what_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(app: zonda.App, upstream: Upstream) -> None:
        app.middleware(looked_at)
        for name in ["www.example.org", "none.example.org", "www.elsewhere.test"]:
            await Client(app).ask(name)
        lines = [record.getMessage() for record in caplog.records]
        (url,) = [line.split('"')[1] for line in lines if line.startswith("metrics url=")]
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
        lines = [line for line in page.splitlines() if line.startswith("zonda_queries_total{")]
        counted = {line.split('"')[1]: int(float(line.split()[-1])) for line in lines}
        assert {reason: count for reason, count in counted.items() if count} == {
            "answered": 1,
            "nxdomain": 1,
            "forwarded": 1,
        }

    with caplog.at_level(logging.INFO, logger="zonda"):
        run(tmp_path, scenario, metrics="127.0.0.1:0")


def test_a_reply_changed_for_some_clients_is_changed_for_them_alone(tmp_path: Path) -> None:
    async def scenario(app: zonda.App, upstream: Upstream) -> None:
        @app.middleware
        async def shortens(query: zonda.Query, reply: zonda.Reply, call_next: Any) -> None:
            await call_next()
            if query.transport == "tcp":
                reply.answers = [zonda.A("192.0.2.99", ttl=7)]

        client = Client(app)
        for name in ["www.example.org", "www.elsewhere.test"]:
            first = await client.told(name)
            assert (await client.told(name, tcp=True)).endswith(" 7 A 192.0.2.99")
            assert await client.told(name) == first

    run(tmp_path, scenario)
