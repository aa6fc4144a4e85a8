"""The cookbook's helper for ACME, with a real client and a real authority."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import environment, python
from databases import START_LIMIT, free_port, required

COOKBOOK = Path(__file__).parents[3] / "docs" / "cookbook-python.md"
# What each recipe begins with, and ends with when it is a program.
PROGRAM = """import asyncio
import zonda
app = zonda.App("127.0.0.1:5300")
{}
app.run()
"""


@contextmanager
def running(command: list[str], port: int, **more: str) -> Iterator[None]:
    """A program for as long as a test takes, from when it listens on a port on."""
    with subprocess.Popen(command, env={**environment(), **more}) as child:
        try:
            limit = time.monotonic() + START_LIMIT
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except OSError:
                    assert time.monotonic() < limit and child.poll() is None, command
                    time.sleep(0.05)
            yield
        finally:
            child.kill()


@contextmanager
def recipe(folder: Path) -> Iterator[tuple[int, int]]:
    """The program of the cookbook: its ports for DNS and for HTTP."""
    section = COOKBOOK.read_text().split("## Certificates by DNS-01 (ACME)\n")[1]
    found = re.search(r"^```python\n(.*?)^```$", section, re.M | re.S)
    assert found is not None
    dns_port, http_port = free_port(), free_port()
    text = PROGRAM.format(found[1]).replace("5300", str(dns_port))
    (folder / "acme.py").write_text(text.replace("8053", str(http_port)))
    with running([*python(), str(folder / "acme.py")], dns_port):
        yield dns_port, http_port


@contextmanager
def authority(folder: Path, dns_port: int) -> Iterator[tuple[str, Path]]:
    """Let's Encrypt's test server, which asks a DNS server of ours: its URL and its certificate."""
    key, certificate, port = folder / "key.pem", folder / "certificate.pem", free_port()
    subprocess.run(
        [
            required("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", str(key), "-out", str(certificate),
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "pebble.json").write_text(
        f'{{"pebble": {{"listenAddress": "127.0.0.1:{port}", "certificate": "{certificate}",'
        f' "privateKey": "{key}", "httpPort": 1, "tlsPort": 1}}}}'
    )
    command = [required("pebble"), "-config", str(folder / "pebble.json")]
    command += ["-dnsserver", f"127.0.0.1:{dns_port}"]
    with running(command, port, PEBBLE_VA_NOSLEEP="1", PEBBLE_WFE_NONCEREJECT="0"):
        yield f"https://127.0.0.1:{port}/dir", certificate


@pytest.mark.once
def test_a_client_of_acme_gets_a_certificate_by_the_helper_of_the_cookbook(tmp_path):
    lego = required("lego")
    with recipe(tmp_path) as (dns_port, http_port):
        with authority(tmp_path, dns_port) as (url, certificate):
            ended = subprocess.run(
                [
                    lego, "--accept-tos", "--server", url, "--path", str(tmp_path / "lego"),
                    "--email", "you@example.org", "--domains", "example.org",
                    "--domains", "*.example.org", "--dns", "httpreq",
                    "--dns.disable-cp", "--dns.resolvers", f"127.0.0.1:{dns_port}", "run",
                ],
                capture_output=True, text=True, timeout=120,
                env={
                    **os.environ,
                    "LEGO_CA_CERTIFICATES": str(certificate),
                    "HTTPREQ_ENDPOINT": f"http://127.0.0.1:{http_port}",
                    "HTTPREQ_USERNAME": "acme",
                    "HTTPREQ_PASSWORD": "s3cret",
                },
            )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    issued = (tmp_path / "lego" / "certificates" / "example.org.crt").read_text()
    assert issued.startswith("-----BEGIN CERTIFICATE-----")


@pytest.mark.parametrize(
    ("login", "path", "told", "status"),
    [
        ("acme:s3cret", "/present", "_acme-challenge.example.org.", 200),
        ("acme:guess", "/present", "_acme-challenge.example.org.", 401),
        ("", "/present", "_acme-challenge.example.org.", 401),
        ("acme:s3cret", "/present", "_acme-challenge.example.net.", 404),
        ("acme:s3cret", "/other", "_acme-challenge.example.org.", 404),
    ],
)
@pytest.mark.once
def test_the_helper_heeds_those_only_who_know_its_password(login, path, told, status, tmp_path):
    with recipe(tmp_path) as (_, port):
        command = ["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "--user", login]
        command += ["--data", f'{{"fqdn": "{told}", "value": "x"}}']
        url = f"http://127.0.0.1:{port}{path}"
        asked = subprocess.run([*command, url], capture_output=True, text=True)
        assert asked.stdout == str(status)
