"""A PostgreSQL server of the tests' own: a fresh cluster in a temporary directory, on a free port.

The server refuses to run as root, so as root it runs as Debian's user `postgres`. It is made with
`fsync` off: tests kill clients, not the machine.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from tests.support.outside import needs
from tests.support.processes import HOST, PATIENCE_S, ServerProcess, free_port

USER, PASSWORD, DATABASE = "postgres", "secret", "postgres"
_OPTIONS = {
    "listen_addresses": HOST,
    "wal_level": "logical",
    "fsync": "off",
    "max_wal_senders": "10",
    "max_replication_slots": "20",
    "shared_buffers": "16MB",
    "unix_socket_directories": "",
}


class PostgresProcess(ServerProcess):
    """One server; `start` after `stop` goes on with the same data."""

    def __init__(self, directory: Path) -> None:
        program = needs("postgresql")
        self.directory = directory
        self._programs = program.parent
        self._make_cluster()
        port = free_port()
        options = [word for name, text in _OPTIONS.items() for word in ("-c", f"{name}={text}")]
        command = [str(program), "-D", str(directory / "data"), "-p", str(port), *options]
        log_path = directory / "postgres.log"
        super().__init__([*_as_user(), *command], port=port, log_path=log_path, cwd=directory)

    def answers(self) -> bool:
        """Whether it takes a statement."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended:\n{self.log_end}")
        try:
            self.run("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def connect(self, **more: Any) -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection that commits by itself, unless told otherwise."""
        chosen = {"dbname": DATABASE, "autocommit": True, **more}
        return psycopg.connect(
            host=HOST, port=self.port, user=USER, password=PASSWORD, connect_timeout=20, **chosen
        )

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements, each by itself; the rows of the last."""
        with self.connect() as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _make_cluster(self) -> None:
        password_file = self.directory / "password"
        password_file.write_text(PASSWORD)
        if os.geteuid() == 0:
            found = pwd.getpwnam(USER)
            for path in (self.directory, password_file):
                os.chown(path, found.pw_uid, found.pw_gid)
        made = [str(self._programs / "initdb"), "-D", str(self.directory / "data"), "-U", USER]
        made += ["--auth=scram-sha-256", f"--pwfile={password_file}", "-N", "-E", "UTF8"]
        done = subprocess.run(
            [*_as_user(), *made, "--locale=C.UTF-8"],
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stderr


def _as_user() -> list[str]:
    """The words before a command that must not run as root; setpriv becomes the command."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups"]


@contextlib.contextmanager
def running_postgres() -> Iterator[PostgresProcess]:
    """A server that answers; skips the test where there is none."""
    needs("postgresql")
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))  # pytest's own are closed to others.
    try:
        with PostgresProcess(directory) as server:
            server.start()
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)
