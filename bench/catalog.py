#!/usr/bin/env python3
"""What a catalog of many members costs the server that makes it, and the one that serves it.

    bench/catalog.py COUNT DIRECTORY [--server target/release/zonda]

DIRECTORY gets COUNT files NAME.zone of six records each, unless it has some, and beside it the
state of both servers. A primary lists them in a catalog, and a secondary transfers that and all
members. Then the secondary starts from its disk while the primary is away, and members are added
one by one. In /dev/shm no disk is waited for, also where zones are written to it.
"""

import argparse
import os
import socket
import struct
import subprocess
import tempfile
import time

TEXT = """$TTL 3600
@ IN SOA ns1 hostmaster 1 7200 3600 1209600 3600
@ IN NS ns1
@ IN NS ns2
ns1 IN A 192.0.2.1
ns2 IN A 192.0.2.2
www IN A 198.51.{}.{}
"""
COMMON = """version = 1
root = "{root}"
state = "{state}"
watch-interval = "1000s"
[[listen]]
address = "127.0.0.1:{port}"
[admin]
address = "off"
socket = "{socket}"
"""
PRIMARY = COMMON + """
[transfers]
at-once = 64
[[zone]]
directory = "{directory}"
transfer = {{ to = ["127.0.0.1"] }}
{catalog}
"""
CATALOG = """catalog = "c.test"
[[zone]]
name = "c.test"
transfer = { to = ["127.0.0.1"], notify = ["127.0.0.1:5392"] }
[zone.members]
"""
SECONDARY = COMMON + """
[[zone]]
name = "c.test"
[zone.secondary]
from = ["127.0.0.1:5391"]
retry-min = "1s"
[[catalog]]
name = "c.test"
"""
ADDED = 20


def write(directory, names):
    """Writes the zones' files."""
    for number, name in enumerate(names):
        with open(f"{directory}/{name}.zone", "w") as file:
            file.write(TEXT.format(number >> 8 & 255, number & 255))


def cpu_secs(pid):
    """CPU seconds of a process so far, those of the kernel for it included."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pss(pid):
    """The octets of memory of a process."""
    lines = open(f"/proc/{pid}/smaps_rollup").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("Pss:")).split()[1])


def serial(port, name):
    """The serial that a server has of a zone, or none."""
    labels = b"".join(bytes([len(it)]) + it.encode() for it in name.split("."))
    query = struct.pack("!6H", 7, 0, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", 6, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        client.connect(("127.0.0.1", port))
        try:
            client.send(query)
            reply = client.recv(4096)
        except OSError:
            return None
    answers = struct.unpack("!H", reply[6:8])[0]
    return struct.unpack("!I", reply[-20:-16])[0] if answers else None


class Server:
    """A server that runs."""

    def __init__(self, program, config, folder, name):
        self.program, self.socket = program, f"{folder}/{name}.sock"
        path = f"{folder}/{name}.toml"
        with open(path, "w") as file:
            file.write(config.replace("{socket}", self.socket))
        self.log = open(f"{folder}/{name}.log", "w")
        command = [program, "serve", "--config", path]
        self.began = time.monotonic()
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def metric(self, name):
        """The value of a metric with its labels; none before the server answers."""
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(self.socket)
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            page = b""
            while octets := client.recv(1 << 16):
                page += octets
        except OSError:
            return None
        finally:
            client.close()
        lines = page.decode().splitlines()
        values = [line.rsplit(" ", 1)[1] for line in lines if line.startswith(name + " ")]
        return float(values[0]) if values else None

    def wait(self, name, value):
        """Waits until a metric has a value; returns the seconds since the start, and CPU seconds."""
        while self.metric(name) != value:
            if self.process.poll() is not None:
                raise SystemExit("a server has ended; are the ports 5391 and 5392 free?")
            time.sleep(0.05)
        return time.monotonic() - self.began, cpu_secs(self.process.pid)

    def reload(self):
        """Has the server read what has changed; returns the CPU seconds of that."""
        before = cpu_secs(self.process.pid)
        command = [self.program, "reload", "--socket", self.socket]
        subprocess.run(command, check=True, capture_output=True)
        return cpu_secs(self.process.pid) - before


MEMBERS = 'zonda_catalog_members{catalog="c.test."}'
CURRENT = 'zonda_secondary_zones{state="current"}'


def measure(options, folder, directory):
    """Runs both servers, and prints what they take."""
    count = len(os.listdir(directory))

    def primary(catalog=CATALOG):
        config = PRIMARY.replace("{catalog}", catalog).replace("{{", "{").replace("}}", "}")
        return start("primary", 5391, config)

    def start(name, port, config):
        config = config.replace("{root}", "/").replace("{state}", f"{folder}/state-{name}")
        config = config.replace("{port}", str(port)).replace("{directory}", directory)
        return Server(options.server, config, folder, name)

    def secondary():
        return start("secondary", 5392, SECONDARY)

    with secondary() as server:
        time.sleep(2)
        empty = pss(server.process.pid)
    with primary() as first:
        while not serial(5391, "c.test"):
            time.sleep(0.05)
        secs, cpu = time.monotonic() - first.began, cpu_secs(first.process.pid)
        print(f"primary: {count} zones and their catalog in {secs:.1f} s, CPU {cpu:.1f} s")
        with secondary() as server:
            secs, cpu = server.wait(CURRENT, count + 1)
            print(f"secondary: all transferred in {secs:.1f} s, CPU {cpu:.1f} s")
    with secondary() as server:
        secs, cpu = server.wait(CURRENT, count + 1)
        print(f"start from the disk, all served: {secs:.2f} s, CPU {cpu:.2f} s")
        time.sleep(5)
        memory, before = pss(server.process.pid) - empty, cpu_secs(server.process.pid)
        print(f"memory: {memory / count:.0f} octets a member, its six records included")
        time.sleep(10)
        cpu = cpu_secs(server.process.pid) - before
        print(f"idle: CPU {cpu * 10:.1f} % of a core")
    add(options, (primary, secondary), directory, count)


def add(options, servers, directory, count):
    """Adds members one by one, and prints what each costs."""
    primary, secondary = servers
    with primary() as first, secondary() as server:
        server.wait(CURRENT, count + 1)
        time.sleep(3)
        times, costs, reloads = [], [], []
        for number in range(ADDED):
            name = f"added{number}.example"
            write(directory, [name])
            before = cpu_secs(server.process.pid)
            reloads.append(first.reload())
            began = time.monotonic()
            while not serial(5392, name):
                time.sleep(0.001)
            times.append(time.monotonic() - began)
            time.sleep(0.5)
            costs.append(cpu_secs(server.process.pid) - before)
        times.sort()
        print(f"one more: served {times[ADDED // 2] * 1e3:.0f} ms after the reload of the primary")
        print(f"one more: CPU of the secondary {sum(costs) / ADDED * 1e3:.1f} ms in half a second")
        print(f"one more: CPU of the primary's reload {sum(reloads) / ADDED * 1e3:.0f} ms", end=", ")
    with primary("") as first:
        while not serial(5391, "added0.example"):
            time.sleep(0.05)
        time.sleep(3)
        reloads = []
        for number in range(ADDED):
            write(directory, [f"without{number}.example"])
            reloads.append(first.reload())
        print(f"{sum(reloads) / ADDED * 1e3:.0f} ms without a catalog")
    for number in range(ADDED):
        os.remove(f"{directory}/added{number}.example.zone")
        os.remove(f"{directory}/without{number}.example.zone")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("directory")
    parser.add_argument("--server", default="target/release/zonda")
    options = parser.parse_args()
    directory = os.path.abspath(options.directory)
    os.makedirs(directory, exist_ok=True)
    if not any(os.scandir(directory)):
        write(directory, [f"zone{number}.example" for number in range(options.count)])
    with tempfile.TemporaryDirectory(dir=os.path.dirname(directory)) as folder:
        measure(options, folder, directory)


main()
