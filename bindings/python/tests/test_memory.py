"""A million handled queries, after which the process has as much memory as after the first."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dns.message
import dns.rcode
import pytest

# Queries in all.
QUERIES = 1_000_000
# Those by which all buffers and arenas have grown.
WARM_UP = 200_000
# By how much resident memory may grow behind them, KiB: ten octets a query, less than any object
# that could be forgotten.
GROWTH_MAX_KIB = 8192
# Queries that wait for replies at once.
WINDOW = 100

# Code of all kinds. A process of its own: this one has memory, too, and looks at it with more care
# (`-X dev`).
SERVER = """
import asyncio, logging, zonda

logging.disable()
app = zonda.App(listen=["127.0.0.1:0"], workers=1)

@app.handle("*.now.example")
def now(query, reply):
    reply.answer(zonda.A("192.0.2.1", ttl=60))

@app.handle("*.stepped.example")
async def stepped(query, reply):
    reply.answer(zonda.A("192.0.2.1", ttl=len(query.name)))

@app.handle("*.later.example")
async def later(query, reply):
    await asyncio.sleep(0)
    return zonda.A("192.0.2.1", ttl=60)

@app.handle("*.raises.example")
def raises(query, reply):
    raise ValueError("a mistake")

@app.handle("*.denies.example")
def denies(query, reply):
    reply.nxdomain()

async def main():
    async with app:
        print(app.addresses[0][1], flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def frames() -> bytes:
    """As many queries as wait at once, each behind its length; one of five fails."""
    kinds = ["now", "stepped", "later", "raises", "denies"]
    names = [f"h{number}.{kinds[number % 5]}.example" for number in range(WINDOW)]
    messages = [dns.message.make_query(name, "A").to_wire() for name in names]
    return b"".join(len(message).to_bytes(2, "big") + message for message in messages)


def read_window(connection: socket.socket) -> tuple[int, int]:
    """Reads the replies to one window: how many octets they have, and how many have failed."""
    octets, failed = 0, 0
    with connection.makefile("rb", buffering=0) as replies:
        for _ in range(WINDOW):
            length = int.from_bytes(exactly(replies.read, 2), "big")
            failed += exactly(replies.read, length)[3] & 0xF == dns.rcode.SERVFAIL
            octets += 2 + length
    return octets, failed


def exactly(read: Callable[[int], bytes], count: int) -> bytes:
    """So many octets."""
    octets = b""
    while len(octets) < count:
        octets += read(count - len(octets))
    return octets


def ask(connection: socket.socket, count: int) -> None:
    """Asks so many queries. Windows are all alike, and so are their replies: those to the first one
    are looked at, and the octets of the others are counted."""
    window = frames()
    connection.sendall(window)
    octets, failed = read_window(connection)
    assert failed == WINDOW / 5
    for _ in range(count // WINDOW - 1):
        connection.sendall(window)
        left = octets
        while left > 0:
            left -= len(connection.recv(left))


def resident_kib(process: int) -> int:
    """Resident memory of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])


@pytest.mark.once
def test_a_million_handled_queries_leave_nothing_behind() -> None:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
                ask(connection, WARM_UP)
                before = resident_kib(server.pid)
                ask(connection, QUERIES - WARM_UP)
                after = resident_kib(server.pid)
        finally:
            server.kill()
    assert after <= before + GROWTH_MAX_KIB, f"{before} KiB, {after} KiB after {QUERIES} queries"
