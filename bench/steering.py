#!/usr/bin/env python3
"""What a change of members costs: the time until answers show it, and the queries that it loses.

    cargo build --release
    python3 bench/steering.py --json target/steering.json

A pool of ten members is probed over TCP on addresses of the loopback network, by Zonda and by
gdnsd with the same interval and thresholds. A member fails when its socket is closed. One client
asks without pause; what counts is the time from the closing of the socket to the first reply
without the member, of which probes take most: at an interval of 2 s and two failures in a row, 2 to
4 s. Zonda says when the deciding probe ended, so that the time from there is told, too.

Of Zonda alone: the same with ten probes a second; a command that takes a member out; nine members
that fail at once; and commands that take members out and in again, 100 a second, while `zonda bench
load` asks on a schedule. Every query must be answered.

OpenGSLB's "Performance Benchmarks" has for a change of health < 1 s for one back end and < 2 s for
ten, without the time until a probe has found it.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ZONE = "@ 60 SOA ns h 1 7200 3600 1209600 60\n@ 60 NS ns\nns 60 A 192.0.2.53\n"
NAME = "www.steered.test"
MEMBERS = [f"127.0.5.{last}" for last in range(1, 11)]


def free_port():
    """A port that no socket has, over UDP and TCP."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            port = tcp.getsockname()[1]
            try:
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Member:
    """An address that accepts connections, or refuses them."""

    def __init__(self, address, port):
        self.place = (address, port)
        self.socket = None
        self.open()

    def open(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.place)
        self.socket.listen(256)
        self.socket.setblocking(False)

    def close(self):
        self.socket.close()

    def accept(self):
        """Ends the connections that wait, so that their queue does not fill."""
        try:
            while True:
                self.socket.accept()[0].close()
        except (BlockingIOError, OSError):
            pass


class Client:
    """One client that asks without pause for all members that answer."""

    def __init__(self, port, members):
        self.members = members
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.socket.settimeout(2)
        labels = b"".join(bytes([len(label)]) + label.encode() for label in NAME.split("."))
        self.query = struct.pack(">6H", 7, 0, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"

    def addresses(self):
        """The addresses of a reply, whose owners are pointers to the question."""
        self.socket.send(self.query)
        reply = self.socket.recv(4096)
        at, found = len(self.query), set()
        for _ in range(struct.unpack(">H", reply[6:8])[0]):
            found.add(socket.inet_ntoa(reply[at + 12 : at + 16]))
            at += 16
        return found

    def wait(self, is_so, limit=60):
        """The time at which the addresses were so first."""
        end = time.time() + limit
        while time.time() < end:
            for member in self.members:
                member.accept()
            if is_so(self.addresses()):
                return time.time()
            time.sleep(0.0005)
        sys.exit(f"not within {limit} s: {self.addresses()}")


class Zonda:
    """Zonda with a pool of the members."""

    def __init__(self, binary, folder, port, check):
        self.folder, self.socket = folder, str(folder / "admin.sock")
        (folder / "zone").write_text(ZONE)
        members = ", ".join(f'{{ address = "{it}" }}' for it in MEMBERS)
        self.port = free_port()
        (folder / "zonda.toml").write_text(
            f"""version = 1
workers = 1
state = "{folder}/state"
[[listen]]
address = "127.0.0.1:{self.port}"
[[pool]]
name = "web"
answers = "all"
members = [{members}]
check = {{ tcp = {port}, {check} }}
[[zone]]
name = "steered.test"
file = "zone"
steer = {{ "www A" = "web" }}
[admin]
address = "off"
socket = "{self.socket}"
"""
        )
        command = [binary, "serve", "--config", folder / "zonda.toml"]
        with open(folder / "log", "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def ask(self, method, path, body=None):
        """What the admin socket answers."""
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self.socket)
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{method} {path}: {answer.status} {text}")
        return json.loads(text)

    def override(self, member, state):
        body = json.dumps({"member": f"web/{member}", "state": state})
        self.ask("POST", "/v1/pool-overrides", body)

    def changed_at(self, member):
        """When the last probe of a member ended that changed its state."""
        members = self.ask("GET", "/v1/pools/web")["members"]
        changes = next(it["changes"] for it in members if it["name"] == member)
        return max(change["at"] for change in changes)

    def end(self):
        self.process.terminate()
        self.process.wait()


class Gdnsd:
    """gdnsd with the same members."""

    def __init__(self, folder, port):
        self.port = free_port()
        for name in ["zones", "run", "state"]:
            (folder / name).mkdir()
        (folder / "zones" / "steered.test").write_text(ZONE + "www 60/1 DYNA multifo!web\n")
        members = ", ".join(f"m{number} => {it}" for number, it in enumerate(MEMBERS))
        (folder / "config").write_text(
            f"""options => {{ listen => 127.0.0.1:{self.port}, run_dir => {folder}/run,
  state_dir => {folder}/state, udp_threads => 1, tcp_threads => 1 }}
service_types => {{ tcp => {{ plugin => tcp_connect, port => {port}, interval => 2, timeout => 1,
  up_thresh => 2, down_thresh => 2, ok_thresh => 1 }} }}
plugins => {{ multifo => {{ web => {{ service_types => tcp, up_thresh => 0.01, {members} }} }} }}
"""
        )
        program = shutil.which("gdnsd", path=os.environ["PATH"] + ":/usr/sbin") or "gdnsd"
        with open(folder / "log", "w") as log:
            command = [program, "-c", folder, "start"]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def end(self):
        self.process.terminate()
        self.process.wait()


def started(client):
    """Waits until all members answer."""
    end = time.time() + 30
    while time.time() < end:
        try:
            client.wait(lambda found: found == set(MEMBERS))
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("the server does not answer")


def measure(server, client, members, rounds, count=1):
    """The seconds until members that fail are answered no more, and until they are again."""
    gone, back, after = [], [], []
    for turn in range(rounds):
        chosen = [members[(turn * count + step) % len(members)] for step in range(count)]
        names = {member.place[0] for member in chosen}
        time.sleep(0.37 * (turn % 7))  # at another moment between two probes each time
        began = time.time()
        for member in chosen:
            member.close()
        seen = client.wait(lambda found: not found & names)
        gone.append(seen - began)
        if isinstance(server, Zonda):
            after.append(seen - max(server.changed_at(name) for name in names))
        began = time.time()
        for member in chosen:
            member.open()
        back.append(client.wait(lambda found: names <= found) - began)
    return {"gone": gone, "back": back, "after_probe": after}


def commands(server, client, rounds):
    """The seconds from a command to the first reply that shows it."""
    took = []
    for turn in range(rounds):
        name = MEMBERS[turn % len(MEMBERS)]
        began = time.time()
        server.override(name, "down")
        took.append(client.wait(lambda found: name not in found) - began)
        server.override(name, "resume")
        client.wait(lambda found: name in found)
    return {"gone": took}


def flapping(server, binary, folder, rate, seconds):
    """What a scheduled load loses while members go out and in again a hundred times a second."""
    (folder / "queries").write_text(f"{NAME} A\n")
    command = [binary, "bench", "load", "-s", "127.0.0.1", "-p", str(server.port), "-d"]
    command += [folder / "queries", "--rate", str(rate), "-l", str(seconds), "--format", "json"]
    load = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    changes, began = 0, time.time()
    while load.poll() is None:
        name = MEMBERS[changes // 2 % len(MEMBERS)]
        server.override(name, ["down", "resume"][changes % 2])
        changes += 1
        time.sleep(max(0.0, began + changes / 100 - time.time()))
    result = json.loads(load.stdout.read().splitlines()[-1])  # behind one line for each second
    return {"changes_per_second": changes / (time.time() - began), "load": result}


def shown(what, seconds):
    """A line of a table: median and greatest, milliseconds."""
    median, greatest = statistics.median(seconds) * 1e3, max(seconds) * 1e3
    print(f"{what:58} {median:10.1f} {greatest:10.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--binary", default="target/release/zonda")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=10_000, help="queries a second while flapping")
    parser.add_argument("--seconds", type=int, default=10, help="how long members flap")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {}
    port = free_port()
    members = [Member(address, port) for address in MEMBERS]
    print(f"{'milliseconds':58} {'median':>10} {'greatest':>10}")

    def contest(name, server, steps):
        try:
            client = Client(server.port, members)
            started(client)
            found[name] = {step: measured(server, client) for step, measured in steps.items()}
        finally:
            server.end()
        for step, result in found[name].items():
            for key, text in [
                ("gone", "until it is answered no more"),
                ("after_probe", "from the deciding probe to the reply"),
                ("back", "until it is answered again"),
            ]:
                if result.get(key):
                    shown(f"{name}, {step}: {text}", result[key])

    def one(server, client):
        return measure(server, client, members, options.rounds)

    def nine(server, client):
        return measure(server, client, members, max(1, options.rounds // 3), 9)

    def new_folder():
        return Path(tempfile.mkdtemp(prefix="zonda-steering-"))

    folders = [new_folder() for _ in range(3)]
    same = 'interval = "2s", timeout = "1s", rise = 2, fall = 2'
    fast = 'interval = "100ms", timeout = "1s", rise = 2, fall = 2'
    try:
        contest("gdnsd, 2 s", Gdnsd(folders[0], port), {"one member": one})
        contest("Zonda, 2 s", Zonda(options.binary, folders[1], port, same), {"one member": one})
        zonda = Zonda(options.binary, folders[2], port, fast)
        contest("Zonda, 0.1 s", zonda, {
            "one member": one,
            "nine members": nine,
            "a command": lambda server, client: commands(server, client, options.rounds),
            "flapping": lambda server, client: flapping(
                server, options.binary, folders[2], options.rate, options.seconds
            ),
        })
    finally:
        for folder in folders:
            shutil.rmtree(folder)
    flaps = found["Zonda, 0.1 s"]["flapping"]
    traffic = flaps["load"]["traffic"]
    print(
        f"{flaps['changes_per_second']:.0f} changes a second: of {traffic['sent']} queries "
        f"{traffic['lost']} were lost, answers {traffic['rcodes']}"
    )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
