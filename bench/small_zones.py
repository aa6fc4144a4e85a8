#!/usr/bin/env python3
"""What many small zones cost: memory, the time to load them, and a reload that finds nothing new.

    bench/small_zones.py COUNT DIRECTORY [--server target/release/zonda] [--cold]

DIRECTORY gets COUNT files NAME.zone of six records each, unless it has some. In /dev/shm, where a
million of them take 4 GiB, no disk is waited for. --cold has the kernel forget what it knows of the
files' contents first, where they are on a disk.
"""

import argparse
import os
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
CONFIG = """version = 1
root = "{directory}"
watch-interval = "1000s"
[[listen]]
address = "127.0.0.1:{port}"
[admin]
address = "off"
socket = "{socket}"
[[zone]]
directory = "{directory}"
"""
PORT = 5391


def write(directory, count):
    """Writes the zones' files."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number in range(count):
        file = os.open(f"{directory}/zone{number}.example.zone", flags, 0o644)
        os.write(file, TEXT.format(number >> 8 & 255, number & 255).encode())
        os.close(file)


def forget(directory):
    """Has the kernel drop the contents of the files from memory."""
    os.sync()
    for entry in os.scandir(directory):
        file = os.open(entry.path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def cpu_secs(pid):
    """CPU seconds of a process so far: its own, and the kernel's for it."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    tick = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / tick, int(fields[12]) / tick


def kib(pid, key, file="smaps_rollup"):
    """A number of KiB that the kernel tells of a process."""
    lines = open(f"/proc/{pid}/{file}").read().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1])


def measure(server, socket, process, count, started):
    """Waits until the server is ready, then prints what it took and takes."""
    pid = process.pid

    def ask(command):
        arguments = [server, command, "--socket", socket]
        return subprocess.run(arguments, capture_output=True).returncode == 0

    def tell(what, since, before):
        user, system = (now - then for now, then in zip(cpu_secs(pid), before))
        secs = time.monotonic() - since
        print(f"{what}: {secs:.2f} s; CPU {user + system:.2f} s, {system:.2f} of it the kernel's")

    while not ask("ready"):
        if process.poll() is not None:
            raise SystemExit("the server has ended; is its port free?")
        time.sleep(0.05)
    tell("load", started, (0, 0))
    time.sleep(3)  # until freed memory is given back
    print(f"memory: {kib(pid, 'Pss:') * 1024 / count:.0f} octets a zone", end=", ")
    print(f"at most {kib(pid, 'VmHWM:', 'status') >> 10} MiB")
    for _ in range(3):
        since, before = time.monotonic(), cpu_secs(pid)
        ask("reload")
        tell("reload without changes", since, before)
    time.sleep(3)
    print(f"memory: {kib(pid, 'Pss:') * 1024 / count:.0f} octets a zone")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int)
    parser.add_argument("directory")
    parser.add_argument("--server", default="target/release/zonda")
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    directory = os.path.abspath(options.directory)
    os.makedirs(directory, exist_ok=True)
    if not any(os.scandir(directory)):
        write(directory, options.count)
    if options.cold:
        forget(directory)
    with tempfile.TemporaryDirectory() as folder:
        config, socket = f"{folder}/zonda.toml", f"{folder}/admin.sock"
        with open(config, "w") as file:
            file.write(CONFIG.format(port=PORT, socket=socket, directory=directory))
        started = time.monotonic()
        with open(f"{folder}/log", "w") as log:
            command = [options.server, "serve", "--config", config]
            with subprocess.Popen(command, stdout=log, stderr=log) as process:
                try:
                    measure(options.server, socket, process, options.count, started)
                finally:
                    process.terminate()


main()
