#!/usr/bin/env python3
"""Queries per second of CPU time: handlers of zonda beside a server made with dnslib.

    pip install dnslib uvloop
    python bindings/python/bench/compare.py --load target/release/zonda --rounds 5

Each server builds one A record for each query. The load comes from `zonda bench load`, over
loopback, one server at a time and in turns; what counts is the CPU time that the server's process
has used, user and system, so that the generator's share of the machine does not matter.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ZONDA = """
import sys, zonda
app = zonda.App(listen=["127.0.0.1:0"], workers=1)

@app.handle("*.example.com", types=["A"])
{function}
    reply.answer(zonda.A("192.0.2.1", ttl=60))

async def main():
    async with app:
        print(app.addresses[0][1], flush=True)
        import asyncio
        await asyncio.sleep(3600)

if "{loop}" == "uvloop":
    import uvloop
    uvloop.run(main())
else:
    import asyncio
    asyncio.run(main())
"""

DNSLIB = """
from dnslib import A, QTYPE, RR
from dnslib.server import BaseResolver, DNSLogger, DNSServer

class Resolver(BaseResolver):
    def resolve(self, request, handler):
        reply = request.reply()
        reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A("192.0.2.1"), ttl=60))
        return reply

server = DNSServer(Resolver(), port=0, address="127.0.0.1", logger=DNSLogger("-request,-reply"))
server.start_thread()
print(server.server.server_address[1], flush=True)
server.thread.join()
"""

SERVERS = {
    "dnslib": DNSLIB,
    "zonda, def": ZONDA.format(function="def a(query, reply):", loop="asyncio"),
    "zonda, async def": ZONDA.format(function="async def a(query, reply):", loop="asyncio"),
    "zonda, async def, uvloop": ZONDA.format(function="async def a(query, reply):", loop="uvloop"),
}


def cpu_seconds(process: int) -> float:
    """User and system time of a process."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(program: str, load: list[str]) -> tuple[float, float]:
    """Replies per second of CPU time, and per second, of a server under load."""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            port = server.stdout.readline().strip()
            command = [*load, "-s", "127.0.0.1", "-p", port, "--names", "uniform:h1000.example.com"]
            subprocess.run(command, check=True, capture_output=True)  # warm up
            before, start = cpu_seconds(server.pid), time.monotonic()
            output = subprocess.run(
                [*command, "--format", "json"], check=True, capture_output=True, text=True
            ).stdout
            used, seconds = cpu_seconds(server.pid) - before, time.monotonic() - start
            whole = json.loads(output.strip().splitlines()[-1])
            return replies(whole) / used, replies(whole) / seconds
        finally:
            server.kill()


def replies(whole: dict) -> int:
    """How many queries were answered."""
    return whole["traffic"]["completed"]


def main() -> None:
    """Measures all servers in turns, and prints the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--load", default="target/release/zonda", help="the zonda program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    load = [options.load, "bench", "load", "-c", "4", "-q", "200", "-l", str(options.seconds)]
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in SERVERS}
    for _ in range(options.rounds):
        for name, program in SERVERS.items():
            results[name].append(measure(program, load))
    base = statistics.median(per_cpu for per_cpu, _ in results["dnslib"])
    print("| server | queries per CPU-second | | queries per second |\n|---|---|---|---|")
    for name, rounds in results.items():
        per_cpu, per_second = (statistics.median(column) for column in zip(*rounds))
        print(f"| {name} | {per_cpu:,.0f} | {per_cpu / base:.1f} x | {per_second:,.0f} |")


if __name__ == "__main__":
    main()
