"""The package as it is installed, and the example program."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import dns.message
import dns.query
import pytest
from conftest import EXAMPLES, environment, python

EXAMPLE = EXAMPLES / "server.py"

# What stubtest is not to mind. mypy does not follow `__all__ += records.__all__`, and PyO3 gives the
# native module an `__all__` that nobody imports by. The words of types and response codes are a `str`
# at run time.
UNMINDED = "zonda.__all__\nzonda._core.__all__\n"
UNMINDED += "zonda.options.RecordType\nzonda.options.ResponseCode\n"


def wheel() -> Path:
    """The wheel under test."""
    if "ZONDA_WHEEL" not in os.environ:
        pytest.skip("ZONDA_WHEEL names no wheel")
    return Path(os.environ["ZONDA_WHEEL"])


def test_the_wheel_is_for_every_python_from_3_10_on_and_has_types():
    assert re.fullmatch(r"zonda-[^-]+-cp310-abi3-[a-z0-9_]+\.whl", wheel().name)
    names = zipfile.ZipFile(wheel()).namelist()
    for name in ("__init__.py", "_core.abi3.so", "_core.pyi", "records.pyi", "py.typed"):
        assert f"zonda/{name}" in names


def sections(elf: bytes) -> set[str]:
    """The names of the sections of a 64-bit library, by the table of their headers."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    size, count, of_names = struct.unpack_from("<HHH", elf, 58)
    name = struct.Struct("<I20xQ")
    _, names = name.unpack_from(elf, table + of_names * size)
    starts = [names + name.unpack_from(elf, table + place * size)[0] for place in range(count)]
    return {elf[start : elf.index(0, start)].decode() for start in starts}


def test_the_library_in_the_wheel_is_stripped_and_comes_with_its_licence():
    archive = zipfile.ZipFile(wheel())
    found = sections(archive.read("zonda/_core.abi3.so"))
    assert ".text" in found
    assert not [name for name in found if name == ".symtab" or name.startswith(".debug")]
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in archive.namelist())


def ask(address: str, name: str, rdtype: str) -> list[str]:
    """The answer of a server."""
    host, port = address.rsplit(":", 1)
    query = dns.message.make_query(name, rdtype)
    reply = dns.query.udp(query, host, timeout=5, port=int(port))
    return [str(rdata) for rrset in reply.answer for rdata in rrset]


def run_example(command: list[str]) -> None:
    """Runs the example program, and asks it all that it can."""
    with subprocess.Popen(
        [*command, str(EXAMPLE), "127.0.0.1:0"], stderr=subprocess.PIPE, text=True,
        env=environment(), cwd=EXAMPLE.parent,
    ) as child:
        try:
            for line in child.stderr:
                found = re.search(r"listening address=(\S+)", line)
                if found:
                    break
            address = found[1]
            assert ask(address, "ann.dyn.example.com", "A") == ["192.0.2.10"]
            assert ask(address, "bob.dyn.example.com", "AAAA") == ["2001:db8::b"]
            assert ask(address, "bob.dyn.example.com", "A") == []
            assert ask(address, "nobody.dyn.example.com", "A") == []
            assert ask(address, "whoami.example.com", "TXT") == ['"127.0.0.1"']
            assert ask(address, "ads.apps.example.org", "A") == []
            assert ask(address, "mail.example.org", "A") == ["198.51.100.25"]
            child.terminate()
            child.communicate(timeout=15)
            assert child.returncode == 0
        finally:
            child.kill()


def test_the_example_program_answers():
    run_example(python())


def test_the_wheel_runs_the_example_in_an_empty_environment(tmp_path):
    venv.create(tmp_path / "empty", with_pip=True)
    interpreter = str(tmp_path / "empty" / "bin" / "python")
    pip = [interpreter, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel())], check=True)
    run_example([interpreter])


@pytest.mark.once
def test_mypy_finds_nothing_in_the_package_and_the_example():
    package = Path(__file__).parents[1] / "python" / "zonda"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(package), str(EXAMPLE)],
        capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(package.parent)},
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.once
def test_the_types_of_the_package_are_what_the_module_has(tmp_path):
    (tmp_path / "unminded").write_text(UNMINDED)
    stubtest = [sys.executable, "-m", "mypy.stubtest", "zonda", "--ignore-disjoint-bases"]
    checked = subprocess.run(
        [*stubtest, "--allowlist", str(tmp_path / "unminded")],
        capture_output=True, text=True, cwd=tmp_path,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


SETS = """
import zonda


def answer(query: zonda.Query, reply: zonda.Reply) -> None:
    reply.rcode = 9
    reply.rcode = "NOTAUTH"
    told: str = reply.rcode
    reply.answers = [*reply.answers, zonda.A("192.0.2.1")]
    reply.authorities = (zonda.NS("ns.example"), [zonda.NS("ns2.example")])
    reply.additionals = []
    first: zonda.Record = reply.answers[0]
    match first:
        case zonda.MX(preference, exchange):
            number: int = preference
            print(number, exchange)
    print(told)


def wrong(reply: zonda.Reply) -> None:
    reply.rcode = 9.5
    reply.answers = 1
"""


@pytest.mark.once
def test_types_know_what_may_be_set_in_a_reply_and_matched_in_a_record(tmp_path):
    (tmp_path / "sets.py").write_text(SETS)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "sets.py"],
        capture_output=True, text=True, cwd=tmp_path,
    )
    told = re.findall(r"^sets.py:(\d+): error", checked.stdout, re.MULTILINE)
    assert told == ["21", "22"], checked.stdout + checked.stderr


CHECKED = """
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import zonda

app = zonda.App("127.0.0.1:0")


async def pool(app: zonda.App) -> AsyncIterator[dict[str, int]]:
    yield {"pool": 1}


async def nothing(app: zonda.App) -> AsyncIterator[None]:
    yield


zonda.App(("127.0.0.1", 0), lifespan=pool)
zonda.App(["127.0.0.1:0", ("::1", 0)], lifespan=nothing, reuse_port=True)
zonda.App(lifespan=contextlib.asynccontextmanager(pool))


@app.handle("generator.example")
def generator(query: zonda.Query, reply: zonda.Reply) -> Iterator[zonda.A]:
    yield zonda.A("192.0.2.1")


@app.handle("deque.example")
async def of_deque(query: zonda.Query, reply: zonda.Reply) -> deque[zonda.A]:
    return deque([zonda.A("192.0.2.1")])


@app.handle(":user.first.example")
def first(user: str, query: zonda.Query, reply: zonda.Reply) -> None:
    rcode: zonda.ResponseCode = "NXDOMAIN" if user == "eve" else "REFUSED"
    reply.rcode = rcode
    reply.tag("user", user)


@app.route("eu.example").on_error(zonda.RecordError)
def wrong_record(error: zonda.RecordError, query: zonda.Query, reply: zonda.Reply) -> None:
    print(error.section, error.index, error.value, error.pattern)


def copy(store: zonda.Store, other: zonda.Store) -> None:
    store.set_many(other.load("example.org"))
    store.set_many([("www.example.org", "A", 60, ["192.0.2.1"])])
    app.forward(*app.addresses)


@app.handle("a.example", types=["A", "AAAA"])
def one(query: zonda.Query, reply: zonda.Reply) -> zonda.A:
    return zonda.A("192.0.2.1")


@app.handle("b.example")
async def several(query: zonda.Query, reply: zonda.Reply) -> list[zonda.A]:
    pattern: str | None = query.pattern
    reply.extended_error("Blocked", pattern or "")
    return [zonda.A("192.0.2.1")]


@app.middleware
async def around(query: zonda.Query, reply: zonda.Reply, call_next: zonda.CallNext) -> None:
    await call_next()
    ip: str = reply.of(zonda.A)[0].ip
    preference: int = reply.of(zonda.MX)[0].preference
    reply.answer(zonda.A(ip), [zonda.MX(preference, "mx.example")])


@app.middleware
def passes(
    query: zonda.Query, reply: zonda.Reply, call_next: zonda.CallNext
) -> Awaitable[None]:
    return call_next()


@app.handle(":user.example")
def captured(query: zonda.Query, reply: zonda.Reply, user: str) -> zonda.TXT:
    return zonda.TXT(user)


async def asks() -> str:
    reply = await app.query("a.example")
    handler: zonda.Handler = several
    answer: zonda.Answer = [zonda.TXT("a"), zonda.MX(1, "b")]
    kept: Callable[[zonda.Query, zonda.Reply], zonda.A] = one
    print(handler, answer, kept)
    return reply.of(zonda.A)[0].ip


@app.handle("a.example")  # wrong
def few(query: zonda.Query) -> None: ...


@app.handle("a.example")  # wrong
def number(query: zonda.Query, reply: zonda.Reply) -> int:
    return 5


@app.middleware  # wrong
async def handler(query: zonda.Query, reply: zonda.Reply) -> None: ...


async def misspelt(reply: zonda.Reply, store: zonda.Store) -> None:
    reply.rcode = "NXDOMIAN"  # wrong
    await app.query("a.example", "AAAAA")  # wrong
    store.set("a.example", "AAAAA", 60, ["192.0.2.1"])  # wrong
    store.remove("a.example", "AAAAA")  # wrong
    zonda.App("127.0.0.1:0", lifespan=5)  # wrong
    zonda.App(5300)  # wrong


def wrong(query: zonda.Query, reply: zonda.Reply) -> None:
    reply.answer(5)  # wrong
    reply.answer("192.0.2.1")  # wrong
    reply.extended_error("Blokced")  # wrong
    reply.of(zonda.A)[0].preference  # wrong
    reply.answers[0].ip  # wrong
    app.handle("a.example", types=["AAAAA"])  # wrong
"""


@pytest.mark.once
@pytest.mark.parametrize("checker", ["mypy --strict", f"basedpyright --pythonpath {sys.executable}"])
def test_types_check_handlers_middleware_and_what_is_read(tmp_path, checker):
    (tmp_path / "checked.py").write_text(CHECKED)
    (tmp_path / "pyrightconfig.json").write_text('{ "typeCheckingMode": "standard" }')
    checked = subprocess.run(
        [sys.executable, "-m", *checker.split(" "), "checked.py"],
        capture_output=True, text=True, cwd=tmp_path,
    )
    told = re.findall(r"checked.py:(\d+)(?::\d+)?(?: -|:) error", checked.stdout)
    lines = enumerate(CHECKED.splitlines(), 1)
    expected = [number for number, line in lines if "# wrong" in line]
    assert sorted({int(it) for it in told}) == expected, checked.stdout + checked.stderr
