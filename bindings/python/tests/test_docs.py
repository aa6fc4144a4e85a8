"""The pages for Python: every block of Python in them is run, and they leave nothing out.

The blocks below one heading are one program, but one that is for dnslib, or is a file with a name, is a
program of its own.
What a program does not say itself is there: `zonda`, `asyncio`, and an `app`. `app.run()` starts and
stops the app. Ports 5300 and 8053 are free ones. Lines keep their numbers, so that a traceback names
that of the page. Where a block names a file, as `sh hook.sh` does, that file is there.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import dns.exception
import dns.message
import dns.query
import pytest
from conftest import EXAMPLES, environment, python
from databases import free_port

import zonda

ROOT = Path(__file__).parents[3]
PAGES = [
    "README.md",
    "bindings/python/README.md",
    "docs/python.md",
    "docs/cookbook-python.md",
    "docs/coming-from-dnslib.md",
    "docs/stores.md",
]


class Program(NamedTuple):
    """Code and where it is: empty lines stand for the others of the page."""

    page: str
    line: int
    text: str
    is_for_dnslib: bool
    file: str = ""


def programs(page: str) -> list[Program]:
    """The programs of a page."""
    found: list[tuple[int, dict[int, str], bool, str]] = []
    language, file, block, is_open = None, "", {}, False
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if line.startswith("```") and language is None:
            language, _, file = line[3:].partition(" ")
            block = {}
        elif line.startswith("```"):
            is_for_dnslib = any("dnslib" in line for line in block.values())
            is_alone = is_for_dnslib or bool(file)
            if language == "python" and (is_alone or not is_open):
                found.append((min(block), block, is_for_dnslib, file))
                is_open = not is_alone
            elif language == "python":
                found[-1][1].update(block)
            language = None
        elif language is not None:
            block[number] = line
        elif line.startswith("## "):
            is_open = False
    return [
        Program(page, first, "\n".join(lines.get(at, "") for at in range(1, max(lines) + 1)), *rest)
        for first, lines, *rest in found
    ]


ALL = [program for page in PAGES for program in programs(page)]
# Those that run in this process.
HERE = [program for program in ALL if not program.file]


def files(page: str) -> dict[str, str]:
    """The files that blocks of a page are, by their names."""
    found = re.findall(r"^```\w+ (\S+)\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    return {name: text for name, text in found}


def run_for_a_moment(app: zonda.App, **_: Any) -> None:
    """What `app.run()` does here."""

    async def moment() -> None:
        async with app:
            pass

    asyncio.run(moment())


@pytest.mark.parametrize("program", HERE, ids=lambda program: f"{program.page}:{program.line}")
def test_the_pages_say_what_happens(program, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples" / "zones", tmp_path / "zones")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(zonda.App, "run", run_for_a_moment)
    port = free_port() if program.is_for_dnslib else 0
    http_port = str(free_port())
    for name, text in files(program.page).items():
        (tmp_path / name).write_text(text.replace("8053", http_port))
    # In one go: the number of a free port may have the other one in it.
    ports = {"5300": str(port), "8053": http_port}
    text = re.sub("5300|8053", lambda it: ports[it[0]], program.text)
    code = compile(text, program.page, "exec")
    app = zonda.App("127.0.0.1:0", workers=1)
    names = {"__name__": "__main__", "asyncio": asyncio, "zonda": zonda, "app": app}
    exec(code, names)
    for name in ("server", "upstream"):  # dnslib's servers keep their sockets when they stop
        if program.is_for_dnslib and name in names:
            names[name].server.server_close()


# What a program is checked with that does not say it itself. The first program of a page, which says
# hello, may be without annotations.
PRELUDE = "import asyncio, zonda; app = zonda.App('127.0.0.1:0')"
FIRST_PRELUDE = "# mypy: allow-untyped-defs, allow-untyped-calls"
FIRST = {"README.md", "bindings/python/README.md", "docs/python.md"}
MYPY = ["mypy", "--strict", "--no-error-summary"]
PYRIGHT = ["basedpyright", "--level", "error", "--pythonpath", sys.executable]


def check(folder: Path, command: list[str]) -> str:
    """What a type checker says of all programs in a folder; nothing, if they are right."""
    files = sorted(it.name for it in folder.glob("*.py"))
    checked = subprocess.run(
        [sys.executable, "-m", *command, *files], capture_output=True, text=True, cwd=folder
    )
    return checked.stdout + checked.stderr if checked.returncode else ""


@pytest.fixture(scope="module")
def checked_programs(tmp_path_factory):
    """A folder with all programs of the pages."""
    folder = tmp_path_factory.mktemp("programs")
    firsts = set(FIRST)
    for program in ALL:
        if not program.is_for_dnslib:  # it has no types
            name = re.sub(r"\W", "_", program.page.removesuffix(".md"))
            prelude = FIRST_PRELUDE if program.page in firsts else PRELUDE
            firsts.discard(program.page)
            (folder / f"{name}_{program.line}.py").write_text(prelude + program.text)
    (folder / "pyrightconfig.json").write_text('{ "typeCheckingMode": "standard" }')
    return folder


@pytest.mark.once
def test_mypy_finds_nothing_in_the_programs_of_the_pages(checked_programs):
    assert check(checked_programs, MYPY) == ""


@pytest.mark.once
def test_pyright_finds_nothing_in_the_programs_of_the_pages(checked_programs):
    assert check(checked_programs, PYRIGHT) == ""


def test_all_pages_have_programs():
    assert {program.page for program in ALL} == set(PAGES)
    assert sum(program.is_for_dnslib for program in ALL) >= 3


def test_the_processes_of_the_page_answer_on_one_address(tmp_path):
    port = free_port()
    file = tmp_path / "workers.py"
    file.write_text(files("docs/python.md")["workers.py"].replace("5300", str(port)))
    query, pids = dns.message.make_query("pid.example", "TXT"), set()
    with subprocess.Popen([*python(), str(file)], env=environment()) as child:
        try:
            limit = time.monotonic() + 30
            while len(pids) < 2:
                assert time.monotonic() < limit and child.poll() is None
                try:
                    reply = dns.query.udp(query, "127.0.0.1", timeout=0.2, port=port)
                    pids.update(str(rdata) for rdata in reply.answer[0])
                except (dns.exception.Timeout, OSError):
                    pass
            child.terminate()
            assert child.wait(15) == 0
        finally:
            child.kill()


def test_the_hello_world_of_the_readme_is_the_example_and_answers(tmp_path):
    example = (EXAMPLES / "hello.py").read_text()
    assert f"```python\n{example}```\n" in (ROOT / "README.md").read_text()
    port = free_port()
    file = tmp_path / "hello.py"
    file.write_text(example.replace("5300", str(port)))
    query = dns.message.make_query("hello.example", "TXT")
    with subprocess.Popen([*python(), str(file)], env=environment()) as child:
        try:
            limit = time.monotonic() + 20
            while True:
                try:
                    reply = dns.query.udp(query, "127.0.0.1", timeout=0.2, port=port)
                    break
                except (dns.exception.Timeout, OSError):
                    assert time.monotonic() < limit and child.poll() is None
            assert str(reply.answer[0]) == 'hello.example. 60 IN TXT "Hello, world!"'
            child.terminate()
            assert child.wait(15) == 0
        finally:
            child.kill()


@pytest.mark.parametrize(
    "class_",
    [zonda.App, zonda.Query, zonda.Reply, zonda.Record, zonda.Store, zonda.OwnStore],
)
def test_the_reference_names_all_that_a_class_has(class_):
    page = (ROOT / "docs" / "python.md").read_text()
    names = [name for name in dir(class_) if not name.startswith("_")]
    missing = [name for name in names if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", page)]
    assert not missing
