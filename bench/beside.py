#!/usr/bin/env python3
"""Latency of names that the core answers, while the program's code has as much to do as it can.

    cargo build --release && cargo build --release -p zonda --example measured && make node wheel
    pip install --target target/pip --upgrade target/python/wheels/zonda-*.whl
    ZONDA_PYTHON=target/pip/zonda python3 bench/beside.py

Each server answers `*.example.com` by code that runs in a thread of its own, and `example.org` from
a zone. `zonda bench load` asks for names of the zone on a schedule, so that a query that has to
wait counts from the moment at which it was due; in every other round a second generator asks for
names of the code in a closed loop, as fast as they are answered. The server is kept on its own CPUs
and both generators on others, where the second one runs only when the first has nothing to do
(SCHED_IDLE), so that what is measured waits for the server alone. What of the latency is the
generator's own lateness is printed beside it, and so is how busy the server was.

Code has as much to do as it can with few outstanding queries already. More of them wait in front of
the workers, whoever answers them: `--beside example.org` puts the same load on the zone instead.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

ZONE = "@ 300 SOA ns h 1 3600 600 86400 60\n@ 300 NS ns\nns 300 A 192.0.2.53\n* 300 A 192.0.2.2\n"

# Both are told where the package is, the port, the number of threads, the niceness of the code's
# thread, for how many microseconds it computes, and the zone.
NODE = """
const os = require('node:os');
const [place, port, threads, nice, work, zone] = process.argv.slice(1);
const { App } = require(place);
const app = new App({ listen: `127.0.0.1:${port}`, workers: Number(threads) });
app.handle('*.example.com/A', (req, res) => {
  const end = performance.now() + Number(work) / 1000;
  while (performance.now() < end);
  return res.answer({ type: 'A', ttl: 300, data: '192.0.2.1' });
});
app.zone('example.org', { text: zone });
app.start().then(() => os.setPriority(Number(nice)));
"""

PYTHON = """
import asyncio, os, sys, threading, time
place, port, threads, nice, work, zone = sys.argv[1:]
work = float(work) / 1e6
sys.path.insert(0, os.path.dirname(place))
import zonda
app = zonda.App(listen=[f"127.0.0.1:{port}"], workers=int(threads))
app.zone("example.org", text=zone)

@app.handle("*.example.com", types=["A"])
def built(query, reply):
    end = time.perf_counter() + work
    while time.perf_counter() < end:
        pass
    reply.answer(zonda.A("192.0.2.1", ttl=300))

async def main():
    async with app:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), int(nice))
        await asyncio.Event().wait()

asyncio.run(main())
"""

# How long a server has to come up, and to end, seconds.
START_LIMIT = 20
# How much longer code is kept busy than the measurement takes, which it has to outlast, seconds.
MARGIN = 4

# The variable that names each, and where it is without that.
PLACES = {
    "rust": ("ZONDA_RUST", "target/release/examples/measured"),
    "node": ("ZONDA_NODE", "bindings/node"),
    "python": ("ZONDA_PYTHON", "~/.cache/zonda/bench/pip/zonda"),
}


def command(kind: str, port: int, options: argparse.Namespace) -> list[str] | None:
    """How a server is started; nothing if it is not there."""
    variable, usual = PLACES[kind]
    place = Path(os.environ.get(variable, usual)).expanduser().absolute()
    if not place.exists():
        print(f"skipped: {kind}: {variable} names nothing that is there", file=sys.stderr)
        return None
    threads = str(len(options.server_cpus.split(",")))
    if kind == "rust":
        code = f"beside:{options.work}:{options.nice}:{options.threads}"
        return [str(place), f"127.0.0.1:{port}", threads, code]
    program = ["node", "-e", NODE] if kind == "node" else [sys.executable, "-c", PYTHON]
    return [*program, str(place), str(port), threads, str(options.nice), str(options.work), ZONE]


def wait_for(server: subprocess.Popen, port: int) -> None:
    """Comes back when a server answers for the zone, and for a name of the code."""
    limit = time.monotonic() + START_LIMIT
    for name in ("ns.example.org", "h1.example.com"):
        labels = b"".join(bytes([len(it)]) + it.encode() for it in name.split("."))
        query = b"\0\1\0\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"
        reply = b""
        while reply[7:8] != b"\1":  # an answer of one record
            if server.poll() is not None or time.monotonic() > limit:
                sys.exit(f"the server does not answer {name}: {server.args}")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
                client.settimeout(0.2)
                client.connect(("127.0.0.1", port))
                try:
                    client.send(query)
                    reply = client.recv(512)
                except OSError:
                    time.sleep(0.05)


def load(port: int, zone: str, more: list[str], options: argparse.Namespace) -> list[str]:
    """A generator that asks for a thousand names of a zone."""
    names = ["--names", f"uniform:h1000.{zone}", "--cpus", options.load_cpus]
    return [options.zonda, "bench", "load", "-p", str(port), *names, "--format", "json", *more]


def cpu_seconds(process: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def whole(output: str) -> dict:
    """What a generator says of its whole run."""
    return json.loads(output.strip().splitlines()[-1])


def measure(process: int, port: int, is_busy: bool, options: argparse.Namespace) -> dict:
    """One round."""
    beside = None
    if is_busy:
        seconds = str(options.seconds + MARGIN)
        closed = ["-c", "4", "-q", str(options.outstanding), "-l", seconds]
        idle = ["chrt", "--idle", "0"]
        beside = subprocess.Popen(
            idle + load(port, options.beside, closed, options), stdout=subprocess.PIPE, text=True
        )
        time.sleep(1)
    try:
        before, began = cpu_seconds(process), time.monotonic()
        on_schedule = ["-c", "4", "--rate", str(options.rate), "-l", str(options.seconds)]
        measured = load(port, "example.org", on_schedule, options)
        output = subprocess.run(measured, check=True, stdout=subprocess.PIPE, text=True).stdout
        busy = (cpu_seconds(process) - before) / (time.monotonic() - began)
        if beside and beside.poll() is not None:
            sys.exit("the code was not kept busy until the end")
        handled = whole(beside.communicate()[0]) if beside else {"rate": 0.0}
    finally:
        if beside:
            beside.kill()
            beside.wait()
    told = whole(output)
    percentiles = dict(told["latency_micros"]["percentiles"])
    late = dict(told["lateness_micros"]["percentiles"])
    return {
        "is_busy": is_busy,
        "p50": percentiles[50.0],
        "p99": percentiles[99.0],
        "p99.9": percentiles[99.9],
        "late_p99": late[99.0],
        "lost": told["traffic"]["lost"],
        "server_cpus": busy,
        "handled_per_sec": handled["rate"],
    }


def rounds(kind: str, options: argparse.Namespace) -> list[dict]:
    """All rounds of a server, idle and busy in turns."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = command(kind, port, options)
    if arguments is None:
        return []
    server = subprocess.Popen(["taskset", "-c", options.server_cpus, *arguments])
    try:
        wait_for(server, port)
        measure(server.pid, port, True, options)  # warms up
        states = [False, True] * options.rounds
        return [measure(server.pid, port, is_busy, options) for is_busy in states]
    finally:
        server.terminate()
        try:
            server.wait(START_LIMIT)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def row(kind: str, taken: list[dict]) -> str:
    """Idle and busy side by side, medians, with the lowest and highest p99."""

    def spread(is_busy: bool, what: str) -> tuple[float, float, float]:
        values = [one[what] for one in taken if one["is_busy"] == is_busy]
        return statistics.median(values), min(values), max(values)

    idle, busy = spread(False, "p99"), spread(True, "p99")
    cells = [
        kind,
        "{:.0f} ({:.0f}–{:.0f})".format(*idle),
        "{:.0f} ({:.0f}–{:.0f})".format(*busy),
        f"{busy[0] / idle[0]:.2f} ×",
        f"{spread(False, 'p50')[0]:.0f}, {spread(True, 'p50')[0]:.0f}",
        f"{spread(False, 'late_p99')[0]:.0f}, {spread(True, 'late_p99')[0]:.0f}",
        f"{sum(one['lost'] for one in taken)}",
        f"{spread(True, 'server_cpus')[0]:.2f}",
        f"{spread(True, 'handled_per_sec')[0]:,.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zonda", default="target/release/zonda", help="the zonda program")
    parser.add_argument("--kinds", default="rust,node,python")
    parser.add_argument("--rate", type=int, default=2000, help="queries a second for the zone")
    parser.add_argument("--outstanding", type=int, default=20, help="queries for code that wait")
    parser.add_argument("--work", type=int, default=0, help="for how long code computes, µs")
    parser.add_argument("--beside", default="example.com", help="what the second generator asks for")
    parser.add_argument("--nice", type=int, default=0, help="niceness of the code's thread")
    parser.add_argument("--threads", type=int, default=0, help="those of code in Rust; 0: its own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--server-cpus", default="0")
    parser.add_argument("--load-cpus", default="1")
    parser.add_argument("--json", type=Path, help="where all rounds are written")
    options = parser.parse_args()
    all_rounds = {kind: rounds(kind, options) for kind in options.kinds.split(",")}
    if options.json:
        told = {"options": vars(options), "rounds": all_rounds}
        options.json.write_text(json.dumps(told, default=str))
    heads = ["code in", "p99 µs, idle", "busy", "", "p50 µs, idle, busy", "late p99 µs, idle, busy"]
    print("| " + " | ".join([*heads, "lost", "CPUs, busy", "handled/s"]) + " |")
    print("|---" * (len(heads) + 3) + "|")
    for kind, taken in all_rounds.items():
        if taken:
            print(row(kind, taken))


if __name__ == "__main__":
    main()
