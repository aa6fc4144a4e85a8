#!/usr/bin/env python3
"""What queries cost while the zone of a million records that they ask for changes all the time.

    bench/big_changes.py [--rate 1000] [--seconds 60] [--rounds 3]

The workload `big` of peers.py, once without and once with changes: clients of the admin interface
put one RRset after the other, each a change of its own with the journal in memory. The server is on
CPU 0; dnsperf and the clients that change are on CPU 1. Its CPU time is read for each thread: that of
the worker, by query, is compared with the reflector's, and that of all other threads, by change, is
what a change costs. Traffic goes to 127.0.0.1 only.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import threading
import time

import peers

# Connections of clients that change the zone, each with one request at a time.
CONNECTIONS = 8
# Seconds of load before anything is counted.
WARM_UP = 2


def threads(pid):
    """CPU seconds of each thread, by its number, with its name."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            text = open(f"/proc/{pid}/task/{task}/stat").read()
        except FileNotFoundError:
            continue
        name = text[text.index("(") + 1 : text.rindex(")")]
        fields = text.rsplit(")", 1)[1].split()
        ticks = int(fields[11]) + int(fields[12])
        found[task] = (name, ticks / os.sysconf("SC_CLK_TCK"))
    return found


class Unix(http.client.HTTPConnection):
    """A connection to the admin socket."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def change(path, names, rate, until, counts, number):
    """Puts one RRset after the other on a schedule, as one of several clients."""
    connection = Unix(path)
    os.sched_setaffinity(threading.get_native_id(), {1})
    interval, made = CONNECTIONS / rate, 0
    due = time.monotonic() + interval * number / CONNECTIONS
    while time.monotonic() < until():
        time.sleep(max(0, due - time.monotonic()))
        due += interval
        name = names[(number + made * CONNECTIONS) % len(names)]
        body = json.dumps({"ttl": 300, "records": [f"192.0.{made // 250 % 256}.{made % 250 + 1}"]})
        try:
            connection.request("PUT", f"/v1/zones/big.test/rrsets/{name}/A", body, {"content-type": "application/json"})
            reply = connection.getresponse()
            answer = reply.read()
        except (OSError, http.client.HTTPException):
            connection.close()  # the server ends connections from time to time
            continue
        if reply.status != 200:
            raise SystemExit(f"{name}: {reply.status} {answer}")
        made += 1
    counts.append(made)


def zonda(folder):
    """How Zonda is started with the zone, which can be changed."""
    state = f"/dev/shm/zonda-big-{os.getpid()}"
    config = folder / "zonda.toml"
    config.write_text(
        f"""version = 1
state = "{state}"
flush-interval = "1d"
[[listen]]
address = "127.0.0.1:{peers.PORT}"
workers = 1
[admin]
address = "off"
socket = "{folder}/admin.sock"
[[zone]]
name = "big.test"
file = "big.test.zone"
writable = true
"""
    )
    return [os.path.abspath(peers.ZONDA), "serve", "--config", str(config)], state


def run(kind, rate, seconds):
    """One round; CPU time of queries and changes, microseconds, and what was lost."""
    folder = peers.WORKDIR / "big-changes"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text, names = peers.big_zone()
    (folder / "big.test.zone").write_text(text)
    queries = folder / "queries.txt"
    queries.write_text("\n".join(names) + "\n")
    state = None
    if kind == "echo":
        command = peers.echo(folder, {}, 1)[0]
    else:
        command, state = zonda(folder)
    log = open(folder / "log", "w")
    server = subprocess.Popen(["taskset", "-c", "0", *command], stdout=log, stderr=log)
    try:
        if not peers.wait_for_answer(names[0]):
            raise SystemExit(f"no answer; see {folder}/log")
        load = ["taskset", "-c", "1", "dnsperf", "-s", "127.0.0.1", "-p", str(peers.PORT), "-d", str(queries)]
        load += ["-c", "100", "-T", "1", "-q", "1000", "-l"]
        subprocess.run([*load, str(WARM_UP)], capture_output=True)
        fresh = peers.rss_mb(server.pid)
        end, counts, clients = [time.monotonic() + seconds], [], []
        with_address = (line.split() for line in text.splitlines() if " IN A " in line)
        owners = [f"{words[0]}.big.test" for words in with_address if "*" not in words[0]][::10]
        if kind == "changes":
            for number in range(CONNECTIONS):
                arguments = (f"{folder}/admin.sock", owners, rate, lambda: end[0], counts, number)
                clients.append(threading.Thread(target=change, args=arguments))
        before = threads(server.pid)
        [client.start() for client in clients]
        out = subprocess.run([*load, str(seconds)], capture_output=True, text=True).stdout
        [client.join() for client in clients]
        after = threads(server.pid)
        number = lambda pattern: float(re.search(pattern, out).group(1))
        answered = number(r"Queries completed:\s+(\d+)")
        used = {task: (name, now - before.get(task, (name, 0))[1]) for task, (name, now) in after.items()}
        is_worker = lambda name: kind == "echo" or name.startswith("udp")
        of_queries = sum(cpu for name, cpu in used.values() if is_worker(name))
        of_changes = sum(cpu for name, cpu in used.values() if not is_worker(name))
        return {
            "query": of_queries / answered * 1e6,
            "change": of_changes / sum(counts) * 1e6 if counts else 0,
            "changes": sum(counts) / seconds,
            "lost": number(r"Queries lost:\s+(\d+)"),
            "rate": number(r"Queries per second:\s+([\d.]+)"),
            "memory": peers.rss_mb(server.pid) / fresh,
        }
    finally:
        server.terminate()
        server.wait()
        if state:
            shutil.rmtree(state, ignore_errors=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rate", type=int, default=1000, help="changes a second")
    options.add_argument("--seconds", type=int, default=60)
    options.add_argument("--rounds", type=int, default=3)
    options = options.parse_args()
    rounds = {"echo": [], "quiet": [], "changes": []}
    for _ in range(options.rounds):
        for kind, taken in rounds.items():
            taken.append(run(kind, options.rate, options.seconds if kind == "changes" else 10))
    median = lambda kind, key: statistics.median(it[key] for it in rounds[kind])
    base = median("echo", "query")
    for kind, taken in rounds.items():
        costs = [it["query"] for it in taken]
        print(
            f"{kind:8} {median(kind, 'query'):6.2f} CPU us/query ({min(costs):.2f}-{max(costs):.2f}), "
            f"{median(kind, 'query') / base:5.2f} x echo, {median(kind, 'rate'):8.0f} q/s, "
            f"lost {sum(it['lost'] for it in taken):.0f}"
        )
    print(
        f"changes: {median('changes', 'changes'):.0f} a second, {median('changes', 'change'):.0f} CPU us each, "
        f"memory {median('changes', 'memory'):.2f} of that before"
    )


if __name__ == "__main__":
    main()
