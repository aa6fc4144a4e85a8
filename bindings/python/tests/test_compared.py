"""The servers of `examples/compared`: those with Zonda answer as they should, and the page counts
right."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "compared"
OURS = ["zonda.mjs", "zonda_server.py", "zonda.rs"]
COLUMNS = [*OURS, "dinodns.js", "dns2.js", "dnslib_server.py", "miekg.go", "hickory.rs"]


def checker() -> ModuleType:
    """`check.py`, which is no package."""
    spec = importlib.util.spec_from_file_location("compared_check", FOLDER / "check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("task", ["hello", "users", "blocker", "acme"])
def test_a_compared_server_does_all_that_it_is_asked(task: str) -> None:
    check = checker()
    program = FOLDER / task / "zonda_server.py"
    found = check.measure(program, [sys.executable, program], check.Upstream())
    assert dict(zip(check.COLUMNS, found)) == dict.fromkeys(check.COLUMNS, True)


@pytest.mark.once
def test_the_page_counts_the_lines_of_the_compared_servers() -> None:
    check = checker()
    page = (ROOT / "docs" / "compared.md").read_text()
    for task in check.TASKS:
        counts = " | ".join(str(check.lines(FOLDER / task / file)) for file in COLUMNS)
        assert f"| {task} | {counts} |\n" in page


@pytest.mark.once
def test_the_page_has_a_row_for_each_compared_server() -> None:
    page = (ROOT / "docs" / "compared.md").read_text()
    rows = set(re.findall(r"^\| ([a-z]+/[a-z0-9_]+\.[a-z]+) \|", page, re.M))
    assert rows == {f"{path.parent.name}/{path.name}" for path in FOLDER.glob("*/*")}
