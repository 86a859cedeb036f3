"""A Python process of Spark's, connected to the JVM before it loads anything slow.

The JVM waits ten seconds for a process that plans a stream, and nobody can change that. PySpark's
own connects when all is imported, which a busy machine may need longer for. Here the first thing
done is the connection, with PySpark's greeting: the secret, its answer, our process id. Then
PySpark's module runs as it would have, and finds the connection open. `worker_python.sh` starts
this as `python -m penstock.spark.start.early_connection MODULE`.
"""

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from io import BufferedRWPair

_BUFFER_BYTES = 65536
_GREETING_S = 15.0


def connect() -> "tuple[socket.socket, BufferedRWPair]":
    """The connection to the JVM that started us, greeted."""
    connection = _open()
    buffer_bytes = int(os.environ.get("SPARK_BUFFER_SIZE", _BUFFER_BYTES))
    file = cast("BufferedRWPair", connection.makefile("rwb", buffer_bytes))
    secret = os.environ.get("PYTHON_WORKER_FACTORY_SECRET")
    if secret is not None:
        _greet(file, secret.encode())
    file.write(struct.pack(">i", os.getpid()))
    file.flush()
    return connection, file


def _open() -> socket.socket:
    timeout_s = float(os.environ.get("SPARK_AUTH_SOCKET_TIMEOUT", _GREETING_S))
    path = os.environ.get("PYTHON_WORKER_FACTORY_SOCK_PATH")
    if path is not None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout_s)
        connection.connect(path)
        return connection
    is_ipv6 = os.environ.get("SPARK_PREFER_IPV6", "false").lower() == "true"
    address = ("::1" if is_ipv6 else "127.0.0.1", int(os.environ["PYTHON_WORKER_FACTORY_PORT"]))
    return socket.create_connection(address, timeout_s)


def _greet(file: "BufferedRWPair", secret: bytes) -> None:
    file.write(struct.pack(">i", len(secret)) + secret)
    file.flush()
    (length,) = struct.unpack(">i", file.read(4))
    if file.read(length) != b"ok":
        raise SystemExit("Spark's JVM did not take the secret that it gave to this process.")


def run(module: str) -> None:
    """Run one of PySpark's modules as the program, on the connection that is open."""
    connection, file = connect()
    import runpy

    from pyspark import worker_util

    @contextmanager
    def already_open(timeout: float | None = -1) -> "Iterator[BufferedRWPair]":
        if timeout is None or timeout > 0:
            connection.settimeout(timeout)
        try:
            yield file
        finally:
            file.close()

    worker_util.get_sock_file_to_executor = already_open  # type: ignore[assignment]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run(sys.argv[1])
