"""The package as it is installed, and the example program."""

from __future__ import annotations

import os
import re
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
                found = re.search(r"listening on (\S+)", line)
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


def test_mypy_finds_nothing_in_the_package_and_the_example():
    pytest.importorskip("mypy")
    package = Path(__file__).parents[1] / "python" / "zonda"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", str(package), str(EXAMPLE)],
        capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(package.parent)},
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
