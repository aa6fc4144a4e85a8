#!/usr/bin/env python3
"""What a client of the Kubernetes API costs alone: Zonda's own beside that of the crate `kube`.

    cargo build --release -p zonda-kubernetes --example follow-objects
    cargo build --release --locked --manifest-path bench/kube-client/Cargo.toml
    scripts/install-cluster-peers
    python3 bench/kube_client.py --json target/kube-client.json

Starts etcd and kube-apiserver on 127.0.0.1, with one service and with many, each with a slice of
endpoints. Each client reads all services and slices once and drops them, pinned to the first CPU.
A list is streamed by a watch, or comes in pages of 500 from an API server that does not stream.

start      memory before anything is read, MiB
read       memory when all has been read, and what of it is anonymous
most       most memory until then
cpu_ms     CPU time of the process, user and system
took_ms    from the start of the process to its end
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from cluster import HERE, Api

LINE = re.compile(r"(start|read): (\d+) kB, (\d+) kB of it anonymous, at most (\d+) kB")


def run(command):
    """Runs a client once: what it costs, and the number of objects that it has read."""
    began = time.monotonic()
    child = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {0}),
    )
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    took = time.monotonic() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{command} ended with {child.returncode}:\n{said}")
    memory = {when: [int(it) / 1024 for it in rest] for when, *rest in LINE.findall(said)}
    objects = int(re.search(r"(\d+) objects", said)[1])
    return objects, {
        "start": memory["start"][0],
        "read": memory["read"][0],
        "anonymous": memory["read"][1],
        "most": memory["read"][2],
        "cpu_ms": 1000 * (usage.ru_utime + usage.ru_stime),
        "took_ms": 1000 * took,
    }


def crates(folder, package):
    """Number of crates that a package is built of for this system, itself included."""
    command = ["cargo", "tree", "--locked", "--package", package, "--edges", "normal",
               "--prefix", "none", "--format", "{p}"]
    lines = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return len({line.split(" (")[0] for line in lines.splitlines() if line})


def stripped(file, folder):
    """Octets of a program without symbols."""
    copy = folder / "stripped"
    subprocess.run(["strip", "-o", copy, file], check=True)
    return copy.stat().st_size


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    root = HERE.parent
    parser.add_argument("--own", type=Path, default=root / "target/release/examples/follow-objects")
    parser.add_argument(
        "--kube", type=Path,
        default=HERE / "kube-client/target/release/zonda-bench-kube-client",
    )
    parser.add_argument("--services", type=int, nargs="+", default=[1, 10_000, 100_000])
    parser.add_argument("--endpoints", type=int, default=1, help="endpoints of each slice")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="zonda-kube-client-"))
    results = {
        "zonda": {"octets": stripped(arguments.own, folder),
                  "crates": crates(root, "zonda-kubernetes")},
        "kube": {"octets": stripped(arguments.kube, folder),
                 "crates": crates(HERE / "kube-client", "zonda-bench-kube-client")},
    }
    print(results, flush=True)
    for services in arguments.services:
        for list_ in ["streamed", "paged"]:
            api = Api(folder / f"{services}-{list_}", services, services * arguments.endpoints,
                      streams=list_ == "streamed")
            try:
                clients = {"zonda": [arguments.own, api.kubeconfig]}
                for fields in ["all-fields", "used-fields"]:
                    clients[f"kube {fields}"] = [arguments.kube, api.kubeconfig, list_, fields]
                rounds = {name: [] for name in clients}
                api.read_all()  # so that the first client does not pay for caches
                for _ in range(arguments.rounds):
                    for name, command in clients.items():
                        objects, cost = run(command)
                        assert objects >= 2 * services, (name, objects)
                        rounds[name].append(cost)
            finally:
                api.stop()
                shutil.rmtree(api.folder, ignore_errors=True)
            for name, costs in rounds.items():
                middle = lambda key: round(statistics.median(it[key] for it in costs), 1)
                median = {key: middle(key) for key in costs[0]}
                print(f"{services} services, {list_}: {name}: {median}", flush=True)
                key = f"{services} {list_}"
                results.setdefault(key, {})[name] = {"median": median, "rounds": costs}
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
