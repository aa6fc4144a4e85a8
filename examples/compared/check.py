"""Runs the programs of this folder, asks each the same questions, and prints a table of what they answer.

    python3 examples/compared/check.py --work target/compared [PROGRAM…]

It needs dnspython, and installs the other libraries into the folder `--work`: with npm, pip, go and
cargo, where these are. A program is named by folder and file, as in `hello/dnslib_server.py`; without names,
all are run for which there is a library. With `--speed 3`, the programs of `hello` are asked by dnsperf
for so many seconds, five times in turns, and the table has the CPU time that a query took; hickory's is
built as a release then, and Zonda's in Rust should be (ZONDA_RUST=target/release/examples). Zonda's packages are those of ZONDA_NODE (a folder with
`node_modules`), ZONDA_PYTHON (an interpreter that has the package) and ZONDA_RUST (the folder
`target/debug/examples`); without one of these, its programs are left out.
"""

import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype

HERE = Path(__file__).parent
TASKS = ("hello", "users", "blocker", "acme")
NODE_LIBRARIES = {"dinodns.js": ("dinodns", "0.0.13"), "dns2.js": ("dns2", "3.0.0")}
QUESTIONS = {
    "hello": ("hello.example", "TXT", '"Hello, world!"'),
    "users": ("ann.users.example", "A", "192.0.2.10"),
    "blocker": ("banner.ads.example", "A", "0.0.0.0"),
    "acme": ("7f.auth.example", "TXT", '"token-1"'),
}


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        tcp.bind(("127.0.0.1", 0))
        return tcp.getsockname()[1]


class Upstream:
    """A server that answers `www.example.net A`, for the blocker to forward to: its hello in miniature."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]

    def answer_one(self):
        self.socket.settimeout(5)
        try:
            octets, client = self.socket.recvfrom(65535)
        except TimeoutError:
            return  # the program has not asked
        reply = dns.message.make_response(dns.message.from_wire(octets), recursion_available=True)
        question = reply.question[0]
        if question.rdtype == dns.rdatatype.A:
            text = f"{question.name} 60 IN A 198.51.100.80"
            reply.answer = dns.message.from_text(f"id 1\n;ANSWER\n{text}\n").answer
        self.socket.sendto(reply.to_wire(), client)


def command(program, work, is_release=False):
    """The command that runs a program, once its library is there; None without one."""
    name = program.name
    task = program.parent.name
    if name == "zonda.mjs" and os.environ.get("ZONDA_NODE"):
        copy = Path(os.environ["ZONDA_NODE"]) / f"{task}.mjs"
        shutil.copy(program, copy)
        return ["node", copy]
    if name == "zonda_server.py" and os.environ.get("ZONDA_PYTHON"):
        return [os.environ["ZONDA_PYTHON"], program]
    if name == "zonda.rs" and os.environ.get("ZONDA_RUST"):
        return [Path(os.environ["ZONDA_RUST"]) / f"compared-{task}"]
    if name in NODE_LIBRARIES and shutil.which("npm"):
        library, version = NODE_LIBRARIES[name]
        if not (work / f"node_modules/{library}").exists():
            run("npm", "install", "--silent", "--prefix", work, f"{library}@{version}")
        copy = work / f"{task}-{name}"
        shutil.copy(program, copy)
        return ["node", copy]
    if name == "dnslib_server.py":
        if not (work / "dnslib").exists():
            run(sys.executable, "-m", "venv", work / "dnslib")
            run(work / "dnslib/bin/pip", "install", "--quiet", "dnslib")
        return [work / "dnslib/bin/python", program]
    if name == "miekg.go" and shutil.which("go"):
        folder = work / "go" / task
        folder.mkdir(parents=True, exist_ok=True)
        (work / "go/go.mod").write_text("module compared\n\ngo 1.24\n\nrequire github.com/miekg/dns v1.1.72\n")
        shutil.copy(program, folder / "main.go")
        run("go", "mod", "tidy", cwd=work / "go")
        run("go", "build", "-o", work / f"go/{task}/program", f"./{task}", cwd=work / "go")
        return [folder / "program"]
    if name == "hickory.rs" and shutil.which("cargo"):
        folder = work / "hickory"
        (folder / "src/bin").mkdir(parents=True, exist_ok=True)
        (folder / "Cargo.toml").write_text(HICKORY)
        shutil.copy(program, folder / f"src/bin/{task}.rs")
        profile, place = ("release", "release") if is_release else ("dev", "debug")
        run("cargo", "build", "--quiet", "--profile", profile, "--bin", task, cwd=folder)
        return [folder / f"target/{place}/{task}"]
    return None


HICKORY = """[package]
name = "compared"
version = "0.0.0"
edition = "2024"

[dependencies]
async-trait = "0.1"
hickory-server = { version = "0.26", default-features = false }
tokio = { version = "1", features = ["macros", "net", "rt-multi-thread", "time"] }

[workspace]
"""


def run(*words, cwd=None, quiet=False):
    """Runs a command; returns what it has printed, if that is not to be shown."""
    pipe = subprocess.PIPE if quiet else None
    words = [str(word) for word in words]
    return subprocess.run(words, check=True, cwd=cwd, stdout=pipe, text=True).stdout


class Asker:
    """Asks a program, and says whether it answers as it should: one method for each column."""

    def __init__(self, task, port, upstream):
        self.task, self.port, self.upstream = task, port, upstream
        self.name, self.type, self.expected = QUESTIONS[task]

    def ask(self, name, rdtype, over=dns.query.udp, **options):
        query = dns.message.make_query(name, rdtype, **options)
        return over(query, "127.0.0.1", port=self.port, timeout=2)

    def is_answer(self, reply):
        return answers(reply) == [self.expected]

    def udp(self):
        return self.is_answer(self.ask(self.name, self.type))

    def tcp(self):
        return self.is_answer(self.ask(self.name, self.type, dns.query.tcp))

    def case(self):
        """The reply repeats the question as it was sent, which resolvers check."""
        mixed = "".join(c.upper() if i % 2 else c for i, c in enumerate(self.name))
        reply = self.ask(mixed, self.type)
        return self.is_answer(reply) and str(reply.question[0].name) == mixed + "."

    def edns(self):
        """A query with OPT gets a reply with OPT (RFC 6891, section 6.1.1)."""
        reply = self.ask(self.name, self.type, use_edns=0, payload=1232)
        return self.is_answer(reply) and reply.edns == 0

    def nodata(self):
        """A type without records: no error, and no answer. Of users and blocked names also an SOA
        record, by which a resolver caches that (RFC 2308, section 5)."""
        reply = self.ask(self.name, "MX")
        soa = any(rrset.rdtype == dns.rdatatype.SOA for rrset in reply.authority)
        soa = soa or self.task in ("hello", "acme")
        return reply.rcode() == dns.rcode.NOERROR and not reply.answer and soa

    def other(self):
        """The blocker gives the upstream's answer, the other programs refuse."""
        if self.task != "blocker":
            return self.ask("www.example.net", "A").rcode() == dns.rcode.REFUSED
        threading.Thread(target=self.upstream.answer_one, daemon=True).start()
        return answers(self.ask("www.example.net", "A")) == ["198.51.100.80"]

    def junk(self):
        """The program goes on after octets that are no query."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as junk:
            for octets in (b"", b"\0", b"\xff" * 11, b"\xff" * 12, b"\xff" * 40, b"\0" * 600):
                junk.sendto(octets, ("127.0.0.1", self.port))
        time.sleep(0.3)
        return self.udp()

    def verdict(self, check):
        try:
            return check(self)
        except (dns.exception.DNSException, OSError):
            return False


COLUMNS = {
    "UDP": Asker.udp,
    "TCP": Asker.tcp,
    "case": Asker.case,
    "EDNS": Asker.edns,
    "NODATA": Asker.nodata,
    "other names": Asker.other,
    "after junk": Asker.junk,
}


def answers(reply):
    return [str(rdata) for rrset in reply.answer for rdata in rrset]


def lines(program):
    """Lines of a program that are neither empty nor a comment."""
    texts = (line.strip() for line in program.read_text().splitlines())
    return sum(1 for text in texts if text and not text.startswith(("//", "#")))


def start(program, words, port, upstream):
    """Starts a program by a command."""
    is_blocker = program.parent.name == "blocker"
    arguments = [f"127.0.0.1:{port}"] + ([upstream.address] if is_blocker else [])
    return subprocess.Popen(
        [str(word) for word in (*words, *arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def cpu_secs(process):
    """The CPU time that a process has had, seconds."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_micros(program, words, seconds, queries):
    """The CPU time that a query takes a program, µs, while 100 are outstanding; None if it has ended,
    or answers none."""
    port, upstream = free_port(), Upstream()
    process = start(program, words, port, upstream)
    try:
        asker = Asker(program.parent.name, port, upstream)
        limit = time.monotonic() + 15
        while not asker.verdict(Asker.udp) and time.monotonic() < limit:
            time.sleep(0.1)
        load = ["dnsperf", "-s", "127.0.0.1", "-p", port, "-d", queries, "-q", 100, "-l"]
        run(*load, 1, quiet=True)  # what is compiled as it runs is compiled now
        before = cpu_secs(process)
        printed = run(*load, seconds, quiet=True)
        completed = re.search(r"Queries completed: +(\d+)", printed)
        count = int(completed[1]) if completed else 0
        return (cpu_secs(process) - before) * 1e6 / count if count else None
    except OSError:
        return None  # it has ended
    finally:
        process.kill()
        process.communicate()
        upstream.socket.close()


def print_speeds(programs, work, seconds, rounds=5):
    """Prints the CPU time a query of programs, in turns: medians, with the least and the most."""
    queries = work / "queries.txt"
    queries.write_text("hello.example TXT\n")
    commands = {program: command(program, work, is_release=True) for program in programs}
    found = {program: [] for program, words in commands.items() if words is not None}
    for _ in range(rounds):
        for program, micros in found.items():
            micros.append(cpu_micros(program, commands[program], seconds, queries))
    print("| program | CPU µs a query |\n|---|---|")
    for program, micros in found.items():
        some = [it for it in micros if it is not None] or [float("nan")]
        spread = f"{statistics.median(some):.3g} ({min(some):.3g}–{max(some):.3g})"
        print(f"| {program.relative_to(HERE)} | {spread} |", flush=True)


def measure(program, words, upstream):
    """Starts a program by a command, and returns its verdicts."""
    port = free_port()
    task = program.parent.name
    process = start(program, words, port, upstream)
    try:
        if task == "acme":
            process.stdin.write(b"set 7f token-1\nset 7f token-2\nclear 7f token-2\nset 80 other\n")
            process.stdin.flush()
        asker = Asker(task, port, upstream)
        limit = time.monotonic() + 15
        while not asker.verdict(Asker.udp) and time.monotonic() < limit and process.poll() is None:
            time.sleep(0.1)
        return [asker.verdict(check) for check in COLUMNS.values()]
    finally:
        process.kill()
        process.communicate()
        upstream.socket.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="where libraries are installed")
    parser.add_argument("--speed", type=int, metavar="SECONDS", help="measure CPU time instead")
    parser.add_argument("programs", nargs="*", help="all without")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    every = [path for task in TASKS for path in sorted((HERE / task).iterdir())]
    programs = [HERE / name for name in arguments.programs] or every
    if arguments.speed is not None:
        hello = [program for program in programs if program.parent.name == "hello"]
        return print_speeds(hello, work, arguments.speed)
    print("| program | lines | " + " | ".join(COLUMNS) + " |")
    print("|---|---|" + "---|" * len(COLUMNS))
    for program in programs:
        words = command(program, work)
        if words is None:
            print(f"{program.relative_to(HERE)}: left out, there is no library", file=sys.stderr)
            continue
        found = measure(program, words, Upstream())
        cells = " | ".join("yes" if verdict else "no" for verdict in found)
        print(f"| {program.relative_to(HERE)} | {lines(program)} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
