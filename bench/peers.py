#!/usr/bin/env python3
"""Measure DNS servers side by side on the seed workloads, in one run.

The server is pinned to one CPU and dnsperf to another. Rounds interleave the servers, so a drift of the machine hits
all alike. The figure to compare is the server's CPU time per answered query (user+system of the process and its
children): it holds on a noisy machine, while QPS here mostly measures dnsperf. A round during which other
processes took more than 5 % of the machine is repeated once; a server whose answers differ from its peers' is marked. `echo` is a bare recvmmsg/sendmmsg UDP
reflector (udp_echo.c, beside this file, built on first use): what the kernel alone costs.

    peers.py --list
    peers.py --workloads dino,erl-all --servers echo,knot,nsd,zonda --rounds 5
    peers.py --workloads dino,erl-mix,erl-all,big --servers echo,zonda,knot,nsd --rounds 7 --json bench/runs/peers.json

With --json, all rounds are kept; `cargo xtask generate` makes README's table of bench/runs/peers.json.

Zonda is $ZONDA (default target/release/zonda). Peers come from Debian: dnsperf knot-dnsutils knot nsd bind9 pdns-server
pdns-backend-bind unbound dnsmasq-base dnsdist ldnsutils. CoreDNS is $COREDNS (go install github.com/coredns/coredns@latest),
DinoDNS $DINODNS (the folder of the npm package `dinodns`). What is not installed is skipped with a word.
Traffic goes to 127.0.0.1 only.
"""
import argparse, json, os, pathlib, re, resource, shutil, signal, statistics, subprocess, sys, tempfile, time

HERE = pathlib.Path(__file__).resolve().parent
WORKDIR = pathlib.Path(os.environ.get("LAB", pathlib.Path(tempfile.gettempdir()) / "zonda-lab"))
PORT, UPSTREAM_PORT = 5300, 5400
ZONDA = os.environ.get("ZONDA", "target/release/zonda")
COREDNS = os.environ.get("COREDNS", "coredns")
DINODNS = os.environ.get("DINODNS", "")

# ------------------------------------------------------------------------------------------------ workloads

def zones_dino():
    """100 zones example{odd}.com with one A record each (DinoDNS against CoreDNS)."""
    return {f"example{x}.com": f"""$ORIGIN example{x}.com.
$TTL 3600
@ IN SOA ns1.example{x}.com. host.example{x}.com. 1 7200 3600 1209600 3600
@ IN NS ns1.example{x}.com.
@ IN A 127.0.0.1
ns1 IN A 127.0.0.1
""" for x in range(1, 201, 2)}

def zones_erldns():
    """The zones behind the published erldns run: its eight names give 87.5 % NOERROR (half of it NODATA) and 12.5 % NXDOMAIN."""
    return {"example.com": """$ORIGIN example.com.
$TTL 120
@ IN SOA ns1.example.com. ahu.example.com. 2000081501 28800 7200 604800 86400
@ IN NS ns1.example.com.
@ IN NS ns2.example.com.
@ IN MX 10 smtp-servers.example.com.
ns1 IN A 192.168.1.1
ns2 IN A 192.168.1.2
smtp-servers IN A 192.168.0.2
www IN CNAME outpost.example.com.
outpost IN A 192.168.2.1
""", "test.com": """$ORIGIN test.com.
$TTL 3600
@ IN SOA ns1.test.com. ahu.example.com. 2005092501 28800 7200 604800 86400
@ IN NS ns1.test.com.
@ IN NS ns2.test.com.
ns1 IN A 1.1.1.1
ns2 IN A 2.2.2.2
www IN CNAME server1.test.com.
server1 IN A 1.2.3.4
"""}

def forward_queries():
    """10 000 names at an upstream: 70.5 % NOERROR, 28 % NXDOMAIN, 1.5 % SERVFAIL (the BIND 9 forwarding test's mix)."""
    kinds = [(i, (i * 7919) % 1000) for i in range(10000)]
    return [f"h{i}.up.test A" if k < 705 else f"nx{i}.up.test A" if k < 985 else f"h{i}.broken.test A" for i, k in kinds]

def big_zone():
    """A zone of about a million records (zonegen.py), made once; its sampled names are the queries."""
    zone, names = WORKDIR / "big.test.zone", WORKDIR / "big.names"
    if not names.exists():
        with open(zone, "w") as f: subprocess.run([sys.executable, HERE / "zonegen.py", "1000000", "7", names], stdout=f, check=True)
    return zone.read_text(), names.read_text().split("\n")[:-1]

ODD = [f"example{x}.com A" for x in range(1, 201, 2)]
WORKLOADS = {  # name: (zones, queries, kind of server)
    "dino": (zones_dino, [f"example{x}.com A" for x in range(1, 201)], "authoritative"),
    "erl-mix": (zones_erldns, ["example.com. A", "thumbs2.ebaystatic.com. AAAA", "sip.hotmail.com. A", "google.com. A",
                               "cache.defamer.com. A", "www.example.com. CNAME"], "authoritative"),
    "erl-all": (zones_erldns, ["example.com A", "example.com NS", "example.com AAAA", "example.com CAA", "example.com CNAME",
                               "ldap.example.com A", "ns2.test.com A", "www.test.com CNAME"], "authoritative"),
    "big": (lambda: {"big.test": big_zone()[0]}, lambda: big_zone()[1], "authoritative"),
    "forward": (dict, forward_queries(), "forwarder"),
    "signed": (zones_dino, ODD, "signer"),
}

# ------------------------------------------------------------------------------------------------ servers: (dir, zones, threads) -> argv, env

def write(path, text): path.write_text(text); return path

def echo(d, zones, threads):
    binary = WORKDIR / "udp_echo"
    if not binary.exists(): subprocess.run(["cc", "-O2", "-o", binary, HERE / "udp_echo.c", "-lpthread"], check=True)
    return [str(binary), str(PORT), str(threads)], {}

def zonda(d, zones, threads):
    flags = [f for n in zones for f in ("--zone", f"{n}={d}/{n}.zone")]
    return [ZONDA, "serve", "--listen", f"127.0.0.1:{PORT}", "--workers", str(threads), *flags], {}

def knot(d, zones, threads, template="", modules=""):
    conf = f"""server:
  listen: 127.0.0.1@{PORT}
  rundir: {d}
  udp-workers: {threads}
  background-workers: 1
log:
  - target: stderr
    any: error
database:
  storage: {d}
{modules}template:
  - id: default
    storage: {d}
    file: %s.zone
    zonefile-load: whole
    journal-content: none
{template}zone:
""" + "".join(f"  - domain: {n}\n" for n in zones)
    return ["knotd", "-c", str(write(d / "knot.conf", conf))], {}

def nsd_conf(d, port, zones, threads):
    return f"""server:
  ip-address: 127.0.0.1@{port}
  server-count: {threads}
  username: ""
  chroot: ""
  zonesdir: {d}
  database: ""
  pidfile: {d}/nsd.pid
  xfrdfile: {d}/xfrd.state
  zonelistfile: {d}/zone.list
  rrl-ratelimit: 0
  reuseport: yes
remote-control:
  control-enable: no
""" + "".join(f"zone:\n  name: {n}\n  zonefile: {n}.zone\n" for n in zones)

def nsd(d, zones, threads):
    return ["nsd", "-d", "-c", str(write(d / "nsd.conf", nsd_conf(d, PORT, zones, threads)))], {}

def bind(d, zones, threads):
    conf = f"""options {{ directory "{d}"; listen-on port {PORT} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no;
  pid-file "{d}/named.pid"; session-keyfile "{d}/sk"; dnssec-validation no; notify no; minimal-responses yes; }}; controls {{}};
""" + "".join(f'zone "{n}" {{ type primary; file "{d}/{n}.zone"; }};\n' for n in zones)
    return ["named", "-f", "-n", str(threads), "-c", str(write(d / "named.conf", conf))], {}

def pdns(d, zones, threads):
    write(d / "bind.conf", "".join(f'zone "{n}" {{ type native; file "{d}/{n}.zone"; }};\n' for n in zones))
    write(d / "pdns.conf", f"launch=bind\nbind-config={d}/bind.conf\nlocal-address=127.0.0.1\nlocal-port={PORT}\nsocket-dir={d}\nguardian=no\n"
          f"daemon=no\nreceiver-threads={threads}\nreuseport=yes\nloglevel=3\nsecurity-poll-suffix=\n")
    return ["pdns_server", f"--config-dir={d}"], {}

def coredns(d, zones, threads):
    if len(zones) == 100:  # as that benchmark did: the template plugin
        blocks = (f'{n}:{PORT} {{\n bind 127.0.0.1\n template IN A {n} {{\n  answer "{{{{ .Name }}}} 60 IN A 127.0.0.1"\n }}\n}}\n' for n in zones)
    else:
        blocks = (f"{n}:{PORT} {{\n bind 127.0.0.1\n file {d}/{n}.zone\n}}\n" for n in zones)
    return [COREDNS, "-conf", str(write(d / "Corefile", "".join(blocks)))], {"GOMAXPROCS": str(threads)}

def dinodns(d, zones, threads):
    records = []
    for n, text in zones.items():
        for p in (l.split() for l in text.splitlines()):
            if len(p) >= 4 and p[1] == "IN" and p[2] in ("A", "AAAA", "CNAME", "NS"):
                records.append((n if p[0] == "@" else f"{p[0]}.{n}", p[2], p[3].rstrip(".")))
    js = f"""const {{DinoDNS,common,plugins}}=require({json.dumps(DINODNS)});const store=new plugins.storage.DefaultStore();
for(const [n,t,v] of {json.dumps(records)}) store.set(n,t,v);
new DinoDNS({{storage:store,networks:[new common.DNSOverTCP({{address:'127.0.0.1',port:{PORT}}}),new common.DNSOverUDP({{address:'127.0.0.1',port:{PORT}}})]}}).start(()=>{{}});"""
    return ["node", str(write(d / "dino.js", js))], {}

def zonda_forward(d, zones, threads):
    return [ZONDA, "serve", "--listen", f"127.0.0.1:{PORT}", "--workers", str(threads), "--forward", f"127.0.0.1:{UPSTREAM_PORT}"], {}

def coredns_forward(d, zones, threads):
    conf = f".:{PORT} {{\n bind 127.0.0.1\n cache 3600 {{\n success 20000\n denial 20000\n }}\n forward . 127.0.0.1:{UPSTREAM_PORT}\n}}\n"
    return [COREDNS, "-conf", str(write(d / "Corefile", conf))], {"GOMAXPROCS": str(threads)}

def bind_forward(d, zones, threads):
    conf = f"""options {{ directory "{d}"; listen-on port {PORT} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion yes; forward only;
  forwarders port {UPSTREAM_PORT} {{ 127.0.0.1; }}; empty-zones-enable no; pid-file "{d}/named.pid"; session-keyfile "{d}/sk";
  dnssec-validation no; notify no; minimal-responses yes; allow-query {{ any; }}; }}; controls {{}};\n"""
    return ["named", "-f", "-n", str(threads), "-c", str(write(d / "named.conf", conf))], {}

def unbound_forward(d, zones, threads):
    conf = f"""server:
 interface: 127.0.0.1@{PORT}
 username: ""
 chroot: ""
 directory: "{d}"
 pidfile: ""
 num-threads: {threads}
 do-not-query-localhost: no
 module-config: "iterator"
 use-syslog: no
 verbosity: 0
 so-reuseport: yes
 msg-cache-size: 64m
 rrset-cache-size: 128m
 local-zone: "test." nodefault
 minimal-responses: yes
remote-control:
 control-enable: no
forward-zone:
 name: "."
 forward-addr: 127.0.0.1@{UPSTREAM_PORT}
"""
    return ["unbound", "-d", "-c", str(write(d / "unbound.conf", conf))], {}

def dnsmasq_forward(d, zones, threads):
    return ["dnsmasq", "-k", "-C", "/dev/null", "-p", str(PORT), "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts",
            f"--server=127.0.0.1#{UPSTREAM_PORT}", "--cache-size=20000", "--dns-forward-max=2000", "--user=root", "--pid-file="], {}

def dnsdist_forward(d, zones, threads):
    conf = f"""setLocal("127.0.0.1:{PORT}",{{reusePort=true}})
newServer({{address="127.0.0.1:{UPSTREAM_PORT}",healthCheckMode="up",sockets=4}})
getPool(""):setCache(newPacketCache(20000,{{maxTTL=86400}}))
setSecurityPollSuffix("")
"""
    return ["dnsdist", "--supervised", "-C", str(write(d / "dnsdist.conf", conf))], {}

def knot_signer(d, zones, threads):
    return knot(d, zones, threads, template="    module: mod-onlinesign/online\n", modules="mod-onlinesign:\n  - id: online\n    nsec-bitmap: [A, NS]\n")

def coredns_signer(d, zones, threads):
    conf = ""
    for n in zones:
        stem = subprocess.run(["ldns-keygen", "-a", "ECDSAP256SHA256", n], cwd=d, capture_output=True, text=True).stdout.strip()
        conf += f"{n}:{PORT} {{\n bind 127.0.0.1\n dnssec {{\n  key file {d}/{stem}\n }}\n file {d}/{n}.zone\n}}\n"
    return [COREDNS, "-conf", str(write(d / "Corefile", conf))], {"GOMAXPROCS": str(threads)}

SERVERS = {
    "authoritative": dict(echo=echo, zonda=zonda, knot=knot, nsd=nsd, pdns=pdns, bind=bind, coredns=coredns, dinodns=dinodns),
    "forwarder": dict(echo=echo, zonda=zonda_forward, unbound=unbound_forward, dnsdist=dnsdist_forward, bind=bind_forward, dnsmasq=dnsmasq_forward, coredns=coredns_forward),
    "signer": dict(echo=echo, knot=knot_signer, coredns=coredns_signer),
}

def upstream(d):
    """NSD with the names that exist; broken.test is configured without data, so it answers SERVFAIL."""
    u = d / "upstream"; u.mkdir(parents=True)
    names = [q.split(".")[0] for q in WORKLOADS["forward"][1] if q.startswith("h") and "up.test" in q]
    write(u / "up.test.zone", "$ORIGIN up.test.\n$TTL 3600\n@ IN SOA ns h 1 7200 3600 1209600 3600\n@ IN NS ns\nns IN A 127.0.0.1\n" + "".join(f"{n} IN A 192.0.2.1\n" for n in names))
    write(u / "nsd.conf", nsd_conf(u, UPSTREAM_PORT, ["up.test", "broken.test"], 1))
    return subprocess.Popen(["nsd", "-d", "-c", str(u / "nsd.conf")], stdout=open(u / "log", "w"), stderr=subprocess.STDOUT, start_new_session=True)

# ------------------------------------------------------------------------------------------------ measuring

def tree(pid):
    """pid and all its descendants."""
    pids = [pid]
    try:
        for t in os.listdir(f"/proc/{pid}/task"):
            for c in open(f"/proc/{pid}/task/{t}/children").read().split(): pids += tree(int(c))
    except FileNotFoundError: pass
    return pids

def cpu_seconds(pid):
    total = 0
    for p in set(tree(pid)):
        try: f = open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split(); total += int(f[11]) + int(f[12])
        except FileNotFoundError: pass
    return total / os.sysconf("SC_CLK_TCK")

def rss_mb(pid):
    """Proportional set size of the process tree: memory shared by forked workers counts once."""
    total = 0
    for p in set(tree(pid)):
        try: total += int(re.search(r"Pss:\s+(\d+)", open(f"/proc/{p}/smaps_rollup").read()).group(1))
        except (FileNotFoundError, AttributeError, PermissionError): pass
    return total / 1024

def busy_seconds():
    """CPU seconds that the whole machine has spent working (user, nice, system, irq, softirq)."""
    f = open("/proc/stat").readline().split()[1:]
    return sum(int(f[i]) for i in (0, 1, 2, 5, 6)) / os.sysconf("SC_CLK_TCK")

def wait_for_answer(query):
    for _ in range(150):
        time.sleep(0.1)
        r = subprocess.run(["kdig", "@127.0.0.1", "-p", str(PORT), "+time=1", "+retry=0", *query.split()], capture_output=True, text=True)
        if "status: " in r.stdout and "SERVFAIL" not in r.stdout: time.sleep(0.5); return True
    return False

def run(server, workload, seconds, server_cpus="0", threads=1, clients=100, load_cpus="1", outstanding=1000):
    zone_maker, queries, kind = WORKLOADS[workload]
    if callable(queries): queries = queries()
    d = WORKDIR / server / workload; shutil.rmtree(d, ignore_errors=True); d.mkdir(parents=True)
    zones = zone_maker()
    for n, text in zones.items(): write(d / f"{n}.zone", text)
    up = upstream(d) if kind == "forwarder" and server != "echo" else None
    argv, env = SERVERS[kind][server](d, zones, threads)
    log = open(d / "log", "w")
    try: p = subprocess.Popen(["taskset", "-c", server_cpus] + argv, env={**os.environ, **env}, stdout=log, stderr=log, start_new_session=True)
    except FileNotFoundError: return f"{argv[0]} is not installed"
    try:
        if not wait_for_answer(queries[0]): return f"no answer; its log: {d}/log"
        write(d / "queries.txt", "\n".join(queries) + "\n")
        load = ["taskset", "-c", load_cpus, "dnsperf", "-s", "127.0.0.1", "-p", str(PORT), "-d", str(d / "queries.txt"), "-c", str(clients), "-T", "1",
                "-q", str(outstanding)] + (["-D"] if kind == "signer" else [])
        subprocess.run(load + ["-n", "1"] + ["-l", "2"], capture_output=True)  # warm up
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        c0, b0, t0 = cpu_seconds(p.pid), busy_seconds(), time.time()
        out = subprocess.run(load + ["-l", str(seconds)], capture_output=True, text=True).stdout
        c1, b1, t1 = cpu_seconds(p.pid), busy_seconds(), time.time()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        dnsperf = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        number = lambda r: float(re.search(r, out).group(1))
        done = number(r"Queries completed:\s+(\d+)")
        if not done: return "answered nothing under load"
        return dict(qps=number(r"Queries per second:\s+([\d.]+)"), us=(c1 - c0) / done * 1e6, lost=number(r"Queries lost:\s+(\d+)"),
                    foreign=(b1 - b0 - (c1 - c0) - dnsperf) / (t1 - t0) / os.cpu_count(), noerror=round(100 * sum(int(n) for n in re.findall(r"NOERROR (\d+)", out)) / done),
                    ms=number(r"Average Latency \(s\):\s+([\d.]+)") * 1e3, mb=rss_mb(p.pid), codes=re.search(r"Response codes:\s+(.*)", out).group(1))
    finally:
        for q in filter(None, (up, p)):
            try: os.killpg(q.pid, signal.SIGTERM)
            except ProcessLookupError: pass
            try: q.wait(5)
            except subprocess.TimeoutExpired: os.killpg(q.pid, signal.SIGKILL); q.wait()

# ------------------------------------------------------------------------------------------------ what is kept of it

def machine():
    """The processor, its CPUs and the kernel."""
    model = re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read())
    return {"cpu": model.group(1) if model else "", "cpus": os.cpu_count(), "kernel": os.uname().release}

VERSION = {"zonda": [ZONDA, "--version"], "knot": ["knotd", "--version"], "nsd": ["nsd", "-v"], "bind": ["named", "-v"], "pdns": ["pdns_server", "--version"],
           "coredns": [COREDNS, "-version"]}

def version(server):
    """What a server prints as its version, if it is known how it is asked."""
    if server not in VERSION: return ""
    r = subprocess.run(VERSION[server], capture_output=True, text=True)
    return ((r.stdout or r.stderr).strip().split("\n") or [""])[0]

def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--servers", help="comma-separated; default: all that suit the workload")
    a.add_argument("--workloads", default="dino,erl-mix,erl-all")
    a.add_argument("--seconds", type=int, default=4); a.add_argument("--rounds", type=int, default=3); a.add_argument("--threads", type=int, default=1)
    a.add_argument("--server-cpus", default="0"); a.add_argument("--load-cpus", default="1"); a.add_argument("--list", action="store_true")
    a.add_argument("--json", metavar="FILE", help="keep every round in a file; README's table is made from one")
    a = a.parse_args()
    if a.list:
        for w, (_, q, k) in WORKLOADS.items(): print(f"{w}: {'sampled' if callable(q) else len(q)} queries; servers: {', '.join(SERVERS[k])}")
        return
    kept = {"began": int(time.time()), "machine": machine(), "seconds": a.seconds, "rounds": a.rounds, "threads": a.threads,
            "server_cpus": a.server_cpus, "load_cpus": a.load_cpus, "versions": {}, "workloads": {}}
    for w in a.workloads.split(","):
        results, why = {}, {}
        names = a.servers.split(",") if a.servers else list(SERVERS[WORKLOADS[w][2]])
        for n in range(a.rounds):
            for s in names:
                if s in why or s not in SERVERS[WORKLOADS[w][2]]: continue
                r = run(s, w, a.seconds, a.server_cpus, a.threads, load_cpus=a.load_cpus)
                if not isinstance(r, str) and r["foreign"] > 0.05: r = run(s, w, a.seconds, a.server_cpus, a.threads, load_cpus=a.load_cpus)  # others were at work: once more
                if isinstance(r, str): why[s] = r
                else: results.setdefault(s, []).append({"round": n, **r})
        med = lambda s, k: statistics.median(x[k] for x in results[s])
        base = med("echo", "us") if "echo" in results else None
        if a.json:  # after each workload, so that nothing is lost when it ends
            kept["versions"].update({s: version(s) for s in results if s not in kept["versions"]})
            kept["workloads"][w] = {"rounds": results, "skipped": why}
            write(pathlib.Path(a.json), json.dumps(kept, indent=1) + "\n")
        print(f"== {w} (server on CPU {a.server_cpus}, medians of {a.rounds} × {a.seconds} s)")
        for s in sorted(results, key=lambda s: med(s, "us")):
            ratio = f"{med(s, 'us') / base:5.2f} × echo" if base else ""
            mix = statistics.median([med(x, "noerror") for x in results if x != "echo"] or [0])
            odd = "  ANSWERS DIFFER FROM THE OTHERS'" if s != "echo" and abs(med(s, "noerror") - mix) > 1 else ""
            print(f"{s:9s} {med(s, 'us'):7.2f} CPU µs/query {ratio}  {med(s, 'qps'):8.0f} q/s  {med(s, 'ms'):7.3f} ms  {med(s, 'mb'):5.0f} MB  lost {med(s, 'lost'):.0f}  {results[s][0]['codes']}{odd}", flush=True)
        for s, reason in why.items(): print(f"{s:9s} skipped: {reason}")

if __name__ == "__main__": main()
