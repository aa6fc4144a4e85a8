"""Real databases for tests, each in a folder of its own and on a free port."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# What the databases let nobody in without.
PASSWORD = "s3cret/"
# How long one may take to come up, seconds.
START_LIMIT = 60.0
# How often one is started again on another port, when somebody else took it meanwhile.
START_TRIES = 4
# Seconds after which `timeout` ends one whose test could not: it was killed itself.
LIFETIME = "600"
# Where Debian keeps the programs of each version of PostgreSQL.
POSTGRES_VERSIONS = Path("/usr/lib/postgresql")
# Who runs PostgreSQL, which refuses to be run by root.
POSTGRES_USER = "postgres"


class Database:
    """A server that is started, stopped and started again on one port."""

    # What its own client is told to see whether it is up.
    probe: str

    def __init__(
        self,
        folder: Path,
        command: Callable[[int], list[str]],
        client: Callable[[int, tuple[str, ...]], list[str]],
    ) -> None:
        """Starts it on a free port. ``client`` is the command of its own client."""
        self._log = folder / "log"
        self._command = command
        self._client = client
        self._process: subprocess.Popen[bytes] | None = None
        for _ in range(START_TRIES):
            self.port = free_port()
            if self.restart():
                return
        raise AssertionError(f"it ends at once:\n{self._log.read_text()}")

    def restart(self) -> bool:
        """Starts it with what it had; whether it came up."""
        with self._log.open("ab") as log:
            command = ["timeout", LIFETIME, *self._command(self.port)]
            process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        limit = time.monotonic() + START_LIMIT
        while process.poll() is None:
            if self._ask(self.probe).returncode == 0:
                self._process = process
                return True
            assert time.monotonic() < limit, f"it is silent:\n{self._log.read_text()}"
            time.sleep(0.05)
        return False

    def tell(self, *words: str) -> str:
        """What its own client says to a command."""
        told = self._ask(*words)
        assert told.returncode == 0, told.stderr
        return told.stdout.rstrip("\n")

    def stop(self, number: int) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(START_LIMIT)
            self._process = None

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs its own client."""
        environment = {**os.environ, "PGPASSWORD": PASSWORD, "PGCONNECT_TIMEOUT": "2"}
        command = self._client(self.port, words)
        return subprocess.run(command, capture_output=True, text=True, env=environment)


class Redis(Database):
    """Redis, which tells what happens to keys."""

    probe = "PING"

    def __init__(self, folder: Path) -> None:
        """Starts an empty one."""
        server = required("redis-server")

        def command(port: int) -> list[str]:
            return [
                server, "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                "--dir", str(folder), "--requirepass", PASSWORD,
                "--appendonly", "yes", "--appendfsync", "always",
                "--notify-keyspace-events", "Kghx",
            ]  # fmt: skip

        def client(port: int, words: tuple[str, ...]) -> list[str]:
            client = ["redis-cli", "-e", "--no-auth-warning", "-h", "127.0.0.1", "-a", PASSWORD]
            return [*client, "-p", str(port), *words]

        super().__init__(folder, command, client)

    @property
    def url(self) -> str:
        """Where it is, with its password."""
        return f"redis://:{PASSWORD.replace('/', '%2F')}@127.0.0.1:{self.port}"

    def end(self) -> None:
        """Ends it."""
        self.stop(signal.SIGTERM)


class Postgres(Database):
    """PostgreSQL with an empty database, run by a user without rights."""

    probe = "SELECT 1"

    def __init__(self, folder: Path) -> None:
        """Makes a database and starts it."""
        required("psql")
        newest = max(POSTGRES_VERSIONS.glob("*/bin"), key=lambda path: int(path.parent.name))
        (folder / "password").write_text(PASSWORD)
        prefix = []
        if os.getuid() == 0:
            for path in (folder, folder / "password"):
                shutil.chown(path, POSTGRES_USER, POSTGRES_USER)
            prefix = ["setpriv", "--reuid", POSTGRES_USER, "--regid", POSTGRES_USER]
            prefix += ["--clear-groups", "--"]
        data = str(folder / "data")
        subprocess.run(
            [
                *prefix, str(newest / "initdb"), "-D", data, "--pwfile", str(folder / "password"),
                "-U", "zonda", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync",
            ],
            check=True, capture_output=True, cwd=folder,
        )  # fmt: skip

        def command(port: int) -> list[str]:
            return [
                *prefix, str(newest / "postgres"), "-D", data, "-p", str(port),
                "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
                "-c", "fsync=off",
            ]  # fmt: skip

        def client(port: int, words: tuple[str, ...]) -> list[str]:
            client = ["psql", "-h", "127.0.0.1", "-p", str(port), "-U", "zonda", "-d", "postgres"]
            return [*client, "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", *words]

        super().__init__(folder, command, client)

    @property
    def url(self) -> str:
        """Where it is, with its password."""
        password = PASSWORD.replace("/", "%2F")
        return f"postgresql://zonda:{password}@127.0.0.1:{self.port}/postgres"

    def end(self) -> None:
        """Ends it, connections and all."""
        self.stop(signal.SIGINT)


@contextmanager
def running(kind: type[Redis] | type[Postgres]) -> Iterator[Redis | Postgres]:
    """A database for as long as a test takes."""
    with tempfile.TemporaryDirectory(prefix="zonda-", ignore_cleanup_errors=True) as folder:
        database = kind(Path(folder))
        try:
            yield database
        finally:
            database.end()


def required(program: str) -> str:
    """Where a program is. A test that looks at nothing must not look passed: that one is missing is
    a failure, unless ``TEST_WITHOUT=redis-server,psql`` names it."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(program, path=path)
    if found is not None:
        return found
    without = os.environ.get("TEST_WITHOUT", "").split(",")
    if program in [name.strip() for name in without]:
        pytest.skip(f"{program} is not installed")
    pytest.fail(f"{program} is not installed: `make packages` installs what the tests need")


# Below the ports that Linux gives, by default, to whoever asks for any: no client has these.
FIRST_PORT, PORTS = 10_000, 22_000
# The places of the ports to try; other processes begin elsewhere.
places = itertools.count(os.getpid() * 13_841)


def free_port() -> int:
    """A port of 127.0.0.1 that is free now, over UDP and TCP."""
    for _ in range(PORTS):
        port = FIRST_PORT + next(places) % PORTS
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    pytest.fail("no port of 127.0.0.1 is free")
