"""What the tests share: a loop to run in, and a client that knows nothing of ours."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import pytest
import uvloop

import zonda

EXAMPLES = Path(__file__).parents[1] / "examples"


class Client:
    """Asks over real sockets, with dnspython."""

    def __init__(self, app: zonda.App) -> None:
        self.app = app

    async def ask(
        self, name: str, rdtype: str = "A", *, tcp: bool = False, timeout: float = 3.0, **query: Any
    ) -> dns.message.Message:
        """The reply; a time-out is an exception of dnspython."""
        address, port = self.app.addresses[0]
        message = dns.message.make_query(name, rdtype, **query)
        way = dns.query.tcp if tcp else dns.query.udp
        return await asyncio.to_thread(way, message, address, timeout=timeout, port=port)

    async def told(self, name: str, rdtype: str = "A", **options: Any) -> str:
        """Response code and answer, as text."""
        reply = await self.ask(name, rdtype, **options)
        answers = [
            f"{rrset.name} {rrset.ttl} {dns.rdatatype.to_text(rdata.rdtype)} {rdata}"
            for rrset in reply.answer
            for rdata in rrset
        ]
        return " | ".join([dns.rcode.to_text(reply.rcode()), *answers])


@pytest.fixture(params=["asyncio", "uvloop"])
def serve(request: pytest.FixtureRequest) -> Any:
    """Runs an app, and a scenario with a client of it, in each kind of loop."""

    def run(app: zonda.App, scenario: Any) -> Any:
        async def main() -> Any:
            async with app:
                return await scenario(Client(app))

        return uvloop.run(main()) if request.param == "uvloop" else asyncio.run(main())

    return run


@pytest.fixture
def app() -> zonda.App:
    """An app that listens on a free port."""
    return zonda.App(listen=["127.0.0.1:0"], workers=1)


@pytest.fixture
def zone_file(tmp_path: Path) -> Path:
    """A zone example.org."""
    file = tmp_path / "example.org.zone"
    file.write_text(
        "@ 300 SOA ns hostmaster 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.53\n"
        'a 300 A 192.0.2.9\na 300 TXT "zone"\n'
    )
    return file


def python() -> list[str]:
    """The interpreter, as a child process is started with it."""
    return [sys.executable, "-X", "dev", "-W", "error"]


def environment() -> dict[str, str]:
    """The environment of a child process."""
    return {**os.environ, "PYTHONUNBUFFERED": "1"}
