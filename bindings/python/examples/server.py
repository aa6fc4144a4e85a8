"""Names out of a database, a block list and a log of slow queries, beside a zone file.

    python bindings/python/examples/server.py 127.0.0.1:5300
    dig @127.0.0.1 -p 5300 ann.dyn.example.com
    dig @127.0.0.1 -p 5300 whoami.example.com TXT
    dig @127.0.0.1 -p 5300 mail.example.org
    dig @127.0.0.1 -p 5300 ads.apps.example.org
"""

import asyncio
import ipaddress
import logging
import sqlite3
import sys
import time
from pathlib import Path

import zonda

ZONE = Path(__file__).parents[3] / "examples" / "zones" / "example.org.zone"
BLOCKED = {"ads.apps.example.org.", "tracker.example.org."}
SLOW_SECONDS = 0.1

log = logging.getLogger("server")
database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute("CREATE TABLE host (user TEXT, address TEXT)")
database.executemany(
    "INSERT INTO host VALUES (?, ?)",
    [("ann", "192.0.2.10"), ("ann", "2001:db8::a"), ("bob", "2001:db8::b")],
)

app = zonda.App(listen=sys.argv[1:] or ["127.0.0.1:5300"])
app.zone("example.org", ZONE)


@app.middleware
async def log_slow_queries(
    query: zonda.Query, reply: zonda.Reply, call_next: zonda.CallNext
) -> None:
    """Sees every query and its reply, whoever answers it."""
    start = time.perf_counter()
    await call_next()
    seconds = time.perf_counter() - start
    if seconds > SLOW_SECONDS:
        log.warning("%s %s took %.3f s: %s", query.name, query.type, seconds, reply.rcode)


@app.middleware
async def block(
    query: zonda.Query, reply: zonda.Reply, call_next: zonda.CallNext
) -> None:
    """Answers some names in place of all that comes behind it."""
    if query.name in BLOCKED:
        reply.nxdomain()
        reply.extended_error("Blocked", "on the list of this server")
    else:
        await call_next()


def addresses_of(user: str) -> list[str]:
    """What the database knows; may block."""
    rows = database.execute("SELECT address FROM host WHERE user = ?", [user])
    return [address for (address,) in rows]


@app.handle(":user.dyn.example.com")
async def dynamic(query: zonda.Query, reply: zonda.Reply) -> None:
    """Answers with the addresses of a user, looked up in a thread of its own."""
    addresses = await asyncio.to_thread(addresses_of, query.captures["user"])
    if not addresses:
        reply.nxdomain()
        return
    reply.no_data()
    for address in addresses:
        is_v4 = ipaddress.ip_address(address).version == 4
        if query.type == ("A" if is_v4 else "AAAA"):
            reply.answer(zonda.A(address, ttl=60) if is_v4 else zonda.AAAA(address, ttl=60))


@app.handle("whoami.example.com", types=["TXT"])
def whoami(query: zonda.Query, reply: zonda.Reply) -> zonda.TXT:
    """Tells clients their address. What is returned is the answer."""
    return zonda.TXT(query.client, ttl=0)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    app.run()
