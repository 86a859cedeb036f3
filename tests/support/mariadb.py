"""A MariaDB server of the tests' own: fresh data in a temporary directory, on a free port."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
from tests.support.outside import needs
from tests.support.processes import HOST, PATIENCE_S, ServerProcess, free_port

USER, PASSWORD, DATABASE = "tester", "secret", "shop"


class MariadbProcess(ServerProcess):
    """One server, run by whoever runs the tests."""

    def __init__(self, directory: Path) -> None:
        program = needs("mariadb")
        port, data = free_port(), directory / "data"
        _make_data(data)
        first = directory / "first.sql"
        first.write_text(
            f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"
            f"CREATE USER IF NOT EXISTS {USER}@'%' IDENTIFIED BY '{PASSWORD}';\n"
            f"GRANT ALL ON *.* TO {USER}@'%';\n"
        )
        options = {
            "datadir": data,
            "socket": directory / "socket",
            "pid-file": directory / "pid",
            "bind-address": HOST,
            "port": port,
            "init-file": first,
            "innodb-flush-log-at-trx-commit": 0,
            "innodb-buffer-pool-size": "16M",
            "skip-name-resolve": "ON",
            "server-id": 1,
            "log-bin": "binlog",
            "binlog-format": "ROW",
            "binlog-row-image": "FULL",
            "binlog-row-metadata": "FULL",
            "user": "root" if os.geteuid() == 0 else os.environ.get("USER", ""),
        }
        words = [f"--{name}={value}" for name, value in options.items() if value != ""]
        command = [str(program), "--no-defaults", *words]
        super().__init__(command, port=port, log_path=directory / "mariadb.log", cwd=directory)

    @property
    def url(self) -> str:
        """As JDBC writes it."""
        return f"jdbc:mariadb://{HOST}:{self.port}/{DATABASE}"

    def answers(self) -> bool:
        """Whether it takes a statement in the database of the tests."""
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"MariaDB ended:\n{self.log_end}")
        try:
            self.run("SELECT 1")
        except pymysql.Error:
            return False
        return True

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements; the rows of the last."""
        connection = pymysql.connect(
            host=HOST, port=self.port, user=USER, password=PASSWORD, database=DATABASE,
            autocommit=True, connect_timeout=20,
        )  # fmt: skip
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                return [tuple(row) for row in cursor.fetchall()]
        finally:
            connection.close()


def _make_data(data: Path) -> None:
    user = ["--user=root"] if os.geteuid() == 0 else []
    done = subprocess.run(
        ["mariadb-install-db", "--no-defaults", f"--datadir={data}", *user,
         "--auth-root-authentication-method=normal", "--skip-test-db"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def running_mariadb() -> Iterator[MariadbProcess]:
    """A server that answers; skips the test where there is none."""
    needs("mariadb")
    directory = Path(tempfile.mkdtemp(prefix="mariadb-"))
    try:
        with MariadbProcess(directory) as server:
            server.start()
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)
