#!/usr/bin/env python3
"""What names of a cluster cost beside their queries: memory, the start, and changes of endpoints.

    cargo build --release -p zonda-cli && scripts/install-cluster-peers
    python3 bench/cluster.py --json target/cluster.json

Starts etcd and kube-apiserver on 127.0.0.1 as `zonda bench suite cluster` does, writes services and
slices of endpoints into etcd, and has Zonda and CoreDNS, each on one CPU, read them:

memory    at the first answer and the most until then, over a server of a cluster that has nothing
ready     from the start of the program to the answer for the last service, and what of it is the
          API's: a client that parses nothing reads all services and slices just before
change    from the moment at which a watch of slices has an endpoint to the first answer with it
churn     CPU time while a thousand endpoints a second change
"""

import argparse
import base64
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import statistics
import struct
import subprocess
import tempfile
import threading
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zonda/cluster-peers"
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    """A port that no socket has, over TCP and UDP."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            port = tcp.getsockname()[1]
            try:
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def program(name):
    """A program that is installed, or built by scripts/install-cluster-peers."""
    folders = [os.environ.get("CLUSTER_PEERS", "")] + sorted(map(str, CACHE.glob("*")))
    found = shutil.which(name, path=os.pathsep.join(folders)) or shutil.which(name)
    if not found:
        raise SystemExit(f"{name} is missing: scripts/install-cluster-peers builds it")
    return found


class Process:
    """A program that runs until the block ends."""

    def __init__(self, command, folder, cpu=None):
        folder.mkdir(parents=True, exist_ok=True)
        self.began = time.monotonic()
        self.log = open(folder / "log", "w")
        pinned = (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None
        self.child = subprocess.Popen(
            list(map(str, command)), stdout=self.log, stderr=self.log, preexec_fn=pinned
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()

    def cpu(self):
        """CPU time so far, seconds: user and system."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self):
        """MiB now (proportional and anonymous), and the most so far (resident)."""
        rollup = Path(f"/proc/{self.child.pid}/smaps_rollup").read_text()
        status = Path(f"/proc/{self.child.pid}/status").read_text()
        field = lambda text, name: int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1024
        return {
            "pss": field(rollup, "Pss"),
            "rss": field(status, "VmRSS"),
            "peak": field(status, "VmHWM"),
        }


def wait(is_so, limit=120):
    """Waits until something is so, for seconds at most."""
    end = time.monotonic() + limit
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit("waited in vain")
        time.sleep(0.005)


class Etcd:
    """Writes objects where the API server reads them."""

    def __init__(self, port):
        self.port, self.connection = port, http.client.HTTPConnection("127.0.0.1", port)

    def is_up(self):
        try:
            self.connection.request("POST", "/v3/kv/range", '{"key": "AA=="}')
            return b"header" in self.connection.getresponse().read()
        except OSError:
            self.connection.close()
            return False

    def put(self, objects):
        """Writes (key, object) pairs in one transaction."""
        code = lambda text: base64.b64encode(text.encode()).decode()
        puts = [
            {"requestPut": {"key": code("/registry/" + key), "value": code(json.dumps(value))}}
            for key, value in objects
        ]
        self.connection.request("POST", "/v3/kv/txn", json.dumps({"success": puts}))
        reply = self.connection.getresponse().read()
        assert b'"succeeded":true' in reply, reply


def ip4(start, number):
    """The address of a number behind another one."""
    return socket.inet_ntoa(struct.pack("!I", start + number))


def metadata(name, **more):
    """The metadata of an object."""
    return {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", **more}


def slice_of(number, endpoints):
    """The slice of a service, with endpoints of these numbers."""
    name = f"s{number}"
    labels = {
        "app": name,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": name,
    }
    items = [
        {
            "addresses": [ip4(0x0A800000, it)],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "nodeName": f"node-{it // 30:04}",
            "targetRef": {
                "kind": "Pod",
                "namespace": "default",
                "name": f"{name}-6d4cf56db6-{it:05x}",
                "uid": f"00000000-0000-4000-9000-{it:012x}",
            },
            "zone": f"zone-{'abc'[it % 3]}",
        }
        for it in endpoints
    ]
    return f"endpointslices/default/{name}-00000", {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata(f"{name}-00000", namespace="default", labels=labels,
                             uid=f"00000000-0000-4000-8000-{number:012x}"),
        "addressType": "IPv4",
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        "endpoints": items,
    }


def service_of(number):
    """A service, with its address's allocation."""
    name, address = f"s{number}", ip4(0x0A600100, number)
    parent = {"group": "", "resource": "services", "namespace": "default", "name": name}
    labels = {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    yield f"ipaddresses/{address}", {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IPAddress",
        "metadata": metadata(address, labels=labels),
        "spec": {"parentRef": parent},
    }
    yield f"services/specs/default/{name}", {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, namespace="default", labels={"app": name},
                             uid=f"00000000-0000-4000-8000-{number:012x}"),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 8080}],
            "selector": {"app": name},
            "sessionAffinity": "None",
        },
        "status": {"loadBalancer": {}},
    }


def populate(etcd, services, pods):
    """Writes services, and pods as endpoints of them; returns the endpoints of each service."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata("default"),
             "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    batch, endpoints = [("namespaces/default", space)], {}
    for number in range(1, services + 1):
        endpoints[number] = list(
            range(pods * (number - 1) // services + 1, pods * number // services + 1)
        )
        batch += [*service_of(number), slice_of(number, endpoints[number])]
        if len(batch) > 500:
            etcd.put(batch)
            batch = []
    etcd.put(batch)
    return endpoints


class Api:
    """etcd and kube-apiserver with objects; without `streams` it has lists in pages only."""

    def __init__(self, folder, services, pods, streams=True):
        self.folder, self.store_port, self.port = folder, free_port(), free_port()
        self.store = self.start("etcd", "store", folder / "etcd", self.store_port)
        self.etcd = Etcd(self.store_port)
        wait(self.etcd.is_up)
        began = time.monotonic()
        self.endpoints = populate(self.etcd, services, pods)
        self.fill_secs = time.monotonic() - began
        api = folder / "api"
        api.mkdir(parents=True)
        subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out",
                        api / "account.pem"], check=True)
        subprocess.run(["openssl", "ec", "-in", api / "account.pem", "-pubout", "-out",
                        api / "account-public.pem"], check=True, stderr=subprocess.DEVNULL)
        gates = [] if streams else ["--feature-gates=WatchList=false"]
        self.api = self.start("kube-apiserver", "api", api, self.port, gates)
        self.kubeconfig = api / "kubeconfig"
        try:
            wait(self.is_ready, 600)
        except BaseException:  # a caller has nothing to stop yet
            self.stop()
            raise

    def start(self, name, role, folder, port, more=()):
        """Starts a program as its file says, with more arguments."""
        role = tomllib.loads((HERE / f"kubernetes/{name}.toml").read_text())["roles"][role]
        values = {"folder": folder, "port": port, "peer_port": free_port(),
                  "store_port": self.store_port}
        fill = lambda text: re.sub(r"\$\{(\w+)\}", lambda it: str(values[it[1]]), text)
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in role.get("files", {}).items():
            (folder / file).write_text(fill(text))
        return Process([program(name), *map(fill, role["arguments"]), *more], folder)

    def get(self, path):
        """Opens a path of the API; returns the response."""
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context)
        connection.request("GET", path, headers={"Authorization": "Bearer suite"})
        response = connection.getresponse()
        response.connection = connection
        return response

    def is_ready(self):
        try:
            return self.get("/readyz").status == 200
        except OSError:
            return False

    def read_all(self):
        """Seconds until all services and slices are read, as a client without parsing does it."""
        began = time.monotonic()
        for path in ["/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices"]:
            response = self.get(path)
            while response.read(1 << 20):
                pass
        return time.monotonic() - began

    def stop(self):
        for process in [self.api, self.store]:
            process.__exit__()


def question(name, number, qtype=1):
    """A query for an address."""
    labels = b"".join(bytes([len(it)]) + it.encode() for it in name.split("."))
    return struct.pack("!6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", qtype, 1)


class Server:
    """A server of the cluster's names, pinned to the first CPU."""

    def __init__(self, kind, zonda, api, folder):
        self.kind, self.port, self.folder = kind, free_port(), folder
        folder.mkdir(parents=True)
        if kind == "zonda":
            (folder / "zonda.toml").write_text(
                f"""version = 1
workers = 1
[[listen]]
address = "127.0.0.1:{self.port}"
[[zone]]
name = "cluster.local"
[zone.kubernetes]
kubeconfig = "{api.kubeconfig}"
pods = "insecure"
reverse = ["10.0.0.0/8"]
[admin]
address = "off"
socket = "{folder}/admin.sock"
"""
            )
            command = [zonda, "serve", "--config", folder / "zonda.toml"]
        else:
            (folder / "Corefile").write_text(
                f"""cluster.local:{self.port} in-addr.arpa:{self.port} {{
  bind 127.0.0.1
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {api.kubeconfig}
    pods insecure
  }}
}}
"""
            )
            os.environ["GOMAXPROCS"] = "1"
            command = [program("coredns"), "-conf", folder / "Corefile"]
        self.process = Process(command, folder, cpu=0)
        self.ask_socket = socket.socket(type=socket.SOCK_DGRAM)
        self.ask_socket.settimeout(0.2)
        self.ask_socket.connect(("127.0.0.1", self.port))
        self.number = 0

    def ask(self, name):
        """The addresses of a name; none if there is no answer."""
        self.number = (self.number + 1) % 65536
        try:
            self.ask_socket.send(question(name, self.number))
            while True:
                reply = self.ask_socket.recv(65535)
                if struct.unpack("!H", reply[:2])[0] == self.number:
                    break
        except OSError:
            return None
        if reply[3] & 15:
            return None
        count = struct.unpack("!H", reply[6:8])[0]
        return [socket.inet_ntoa(reply[-4:])] if count == 1 else [""] * count


def start(kind, arguments, api, folder, last):
    """Starts a server; returns it with what its start cost."""
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(kind, arguments.zonda, api, folder)
    wait(lambda: server.ask(f"s{last}.default.svc.cluster.local"))
    ready, cpu = time.monotonic() - server.process.began, server.process.cpu()
    time.sleep(3)
    return server, {"ready_secs": ready, "cpu_secs": cpu, **server.process.memory()}


def change(api, server, rounds):
    """Milliseconds from the event on a watch to an answer with a new endpoint."""
    version = json.loads(api.get("/apis/discovery.k8s.io/v1/endpointslices?limit=1").read())
    version = version["metadata"]["resourceVersion"]
    arrived = {}

    def watch():
        response = api.get(
            f"/apis/discovery.k8s.io/v1/endpointslices?watch=1&resourceVersion={version}"
            f"&timeoutSeconds=600"
        )
        while line := response.readline():
            for address in re.findall(rb'"(10\.200\.\d+\.\d+)"', line):
                arrived.setdefault(address.decode(), time.monotonic())

    threading.Thread(target=watch, daemon=True).start()
    time.sleep(0.5)
    after_event, after_write = [], []
    for it in range(rounds):
        number = 1 + it % len(api.endpoints)
        address = ip4(0x0AC80000, 1 + it + change.used)
        key, value = slice_of(number, api.endpoints[number])
        value["endpoints"][0]["addresses"] = [address]
        name = f"{address.replace('.', '-')}.s{number}.default.svc.cluster.local"
        api.etcd.put([(key, value)])
        written = time.monotonic()
        wait(lambda: server.ask(name), 30)
        answered = time.monotonic()
        wait(lambda: address in arrived, 30)
        after_event.append(1000 * (answered - arrived[address]))
        after_write.append(1000 * (answered - written))
        time.sleep(0.05)
    change.used += rounds
    spread = lambda values: {"median": statistics.median(values), "most": max(values),
                             "p90": sorted(values)[len(values) * 9 // 10]}
    return {"after_event_ms": spread(after_event), "after_write_ms": spread(after_write)}


change.used = 0


def churn(api, server, per_second, seconds, first):
    """CPU time of a server while endpoints change, a share of a core. No two changes write the same:
    they have numbers from `first` on."""
    before, began, made = server.process.cpu(), time.monotonic(), 0
    at_once = max(1, per_second // 100)
    while time.monotonic() - began < seconds:
        batch = []
        for _ in range(at_once if per_second else 0):
            number = 1 + (first + made) % len(api.endpoints)
            key, value = slice_of(number, api.endpoints[number])
            value["endpoints"][0]["addresses"] = [ip4(0x0AD00000, first + made)]
            batch.append((key, value))
            made += 1
        if batch:
            api.etcd.put(batch)
        pause = began + made / per_second - time.monotonic() if per_second else 0.1
        time.sleep(max(0.0, pause))
    used, took = server.process.cpu() - before, time.monotonic() - began
    return {"changes": made, "changes_per_second": made / took, "core_percent": 100 * used / took,
            "micros_per_change": 1e6 * used / made if made else None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--zonda", default=str(HERE.parent / "target/release/zonda"))
    parser.add_argument("--servers", default="zonda,coredns")
    parser.add_argument("--services", type=int, default=8200)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--changes", type=int, default=100, help="changes whose way is timed")
    parser.add_argument("--seconds", type=int, default=10, help="length of a churn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder, results = Path(tempfile.mkdtemp(prefix="zonda-cluster-")), {}
    say = lambda *what: print(*what, flush=True)
    for name, services, pods in [("idle", 1, 0), ("full", arguments.services, arguments.pods)]:
        api = Api(folder / name, services, pods)
        say(f"{name}: {services} services, {pods} pods, written in {api.fill_secs:.1f} s")
        try:
            for kind in arguments.servers.split(","):
                own = results.setdefault(kind, {})
                own[name] = []
                for number in range(arguments.rounds):
                    read = api.read_all()
                    server, cost = start(kind, arguments, api, folder / kind, services)
                    cost["api_read_secs"] = read
                    own[name].append(cost)
                    say(kind, {key: round(value, 2) for key, value in cost.items()})
                    if name == "full" and number == 0:
                        own["change"] = change(api, server, arguments.changes)
                        say(kind, own["change"])
                        own["churn"] = []
                        first = 0
                        for rate in [0, 1000, 1000, 1000]:
                            own["churn"].append(churn(api, server, rate, arguments.seconds, first))
                            first += own["churn"][-1]["changes"]
                            say(kind, own["churn"][-1])
                        own["after"] = server.process.memory()
                        say(kind, "after the changes", own["after"])
                    server.process.__exit__()
        finally:
            api.stop()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
