"""Runs the programs of this folder, asks each the same questions, and prints a table of what they answer.

    python3 examples/compared/check.py --work target/compared [PROGRAM…]

It needs dnspython, and installs the other libraries into the folder `--work`: with npm, pip, go and
cargo, where these are. A program is named by folder and file, as in `hello/dnslib_server.py`; without names,
all are run for which there is a library. Zonda's packages are those of ZONDA_NODE (a folder with
`node_modules`), ZONDA_PYTHON (an interpreter that has the package) and ZONDA_RUST (the folder
`target/debug/examples`); without one of these, its programs are left out.
"""

import argparse
import os
import shutil
import socket
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


def command(program, work):
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
        run("cargo", "build", "--quiet", "--bin", task, cwd=folder)
        return [folder / f"target/debug/{task}"]
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


def run(*words, cwd=None):
    subprocess.run([str(word) for word in words], check=True, cwd=cwd)


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


def measure(program, words, upstream):
    """Starts a program by a command, and returns its verdicts."""
    port = free_port()
    task = program.parent.name
    arguments = [f"127.0.0.1:{port}"] + ([upstream.address] if task == "blocker" else [])
    process = subprocess.Popen(
        [str(word) for word in (*words, *arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
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
    parser.add_argument("programs", nargs="*", help="all without")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    every = [path for task in TASKS for path in sorted((HERE / task).iterdir())]
    programs = [HERE / name for name in arguments.programs] or every
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
