"""A Python process of Spark is connected before its imports are done, however long they take."""

import os
import socket
import struct
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from penstock.spark.start.worker_start import worker_environment

SECRET = b"not to be told"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PySpark that takes as long to import as the test wants, and a module of it."""
    (tmp_path / "pyspark").mkdir()
    slow = f"""
        import time
        from pathlib import Path
        while not Path({str(tmp_path / "go")!r}).exists():
            time.sleep(0.01)
    """
    (tmp_path / "pyspark" / "__init__.py").write_text(textwrap.dedent(slow))
    (tmp_path / "pyspark" / "worker_util.py").write_text("get_sock_file_to_executor = None\n")
    plan = """
        from pyspark.worker_util import get_sock_file_to_executor
        if __name__ == "__main__":
            with get_sock_file_to_executor(timeout=None) as file:
                file.write(file.readline().upper())
    """
    (tmp_path / "pyspark" / "planner.py").write_text(textwrap.dedent(plan))
    return tmp_path


@pytest.fixture
def jvm() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def read(file: IO[bytes]) -> int:
    (number,) = struct.unpack(">i", file.read(4))
    return int(number)


def start(jvm: socket.socket, path: Path) -> "subprocess.Popen[bytes]":
    environment = worker_environment(is_here=True)
    return subprocess.Popen(
        [environment["PYSPARK_PYTHON"], "-m", "pyspark.planner"],
        env={
            **os.environ,
            **environment,
            "PYTHONPATH": str(path),
            "PYTHON_WORKER_FACTORY_PORT": str(jvm.getsockname()[1]),
            "PYTHON_WORKER_FACTORY_SECRET": SECRET.decode(),
        },
        stderr=subprocess.PIPE,
    )


def test_the_connection_comes_before_the_imports_and_serves_the_module(
    jvm: socket.socket, path: Path
) -> None:
    with start(jvm, path) as process:
        connection, _ = jvm.accept()  # PySpark is still being imported.
        with connection, connection.makefile("rwb") as file:
            assert file.read(read(file)) == SECRET
            file.write(struct.pack(">i", 2) + b"ok")
            file.flush()
            assert read(file) == process.pid
            (path / "go").touch()
            file.write(b"plan\n")
            file.flush()
            assert file.read() == b"PLAN\n", process.stderr and process.stderr.read()
    assert process.returncode == 0


def test_a_jvm_that_refuses_the_secret_is_left(jvm: socket.socket, path: Path) -> None:
    with start(jvm, path) as process:
        connection, _ = jvm.accept()
        with connection, connection.makefile("rwb") as file:
            file.read(read(file))
            file.write(struct.pack(">i", 3) + b"err")
            file.flush()
            assert process.stderr is not None
            assert b"did not take the secret" in process.stderr.read()
    assert process.returncode == 1
