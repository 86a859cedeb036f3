"""Spark's JVM, launched by PySpark's own function, with its greetings left out.

On each start Java and Spark print half a dozen lines that tell a user nothing: an incubating
module, a default log level, a native library. They would come before the first line of any program.
PySpark offers no way to say so when it makes a session; a session finds a JVM that runs already, so
it is launched here. All else that it prints on stderr, warnings and errors among it, is passed on.
"""

import os
import re
import subprocess
import threading
from collections.abc import Mapping
from typing import Any

_GREETING = re.compile(
    rb"WARNING: Using incubator modules: |Using Spark's default log4j profile: "
    rb"|Setting (default|Spark) log level to |To adjust logging level use sc\.setLogLevel"
    rb"|\S+ \S+ WARN NativeCodeLoader: Unable to load native-hadoop library"
)
_CHUNK_BYTES = 65536
_STDERR = 2


def launch(
    master: str, conf: Mapping[str, str], streams: Mapping[str, Any]
) -> "subprocess.Popen[bytes]":
    """Launch the JVM; `streams` are its stdout and stderr, where they are not this process's."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    pairs = SparkConf(loadDefaults=False).setAll([*conf.items(), ("spark.master", master)])
    gateway = launch_gateway(pairs, dict(streams))  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)
    process: subprocess.Popen[bytes] = gateway.proc
    return process


def launch_quietly(master: str, conf: Mapping[str, str]) -> threading.Event:
    """Launch the JVM without its greetings, until the event that is returned is set."""
    is_ready = threading.Event()
    source, target = os.pipe()
    copier = threading.Thread(target=_copy, args=(source, is_ready), name="Spark's stderr")
    copier.daemon = True
    copier.start()
    try:
        launch(master, conf, {"stderr": target})
    finally:
        os.close(target)
    return is_ready


def is_launched() -> bool:
    """Whether this process has a JVM already, its own or the one that has started it."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def without_greetings(text: bytes) -> bytes:
    """Whole lines without those that are greetings."""
    kept = (line for line in text.splitlines(keepends=True) if not _GREETING.match(line))
    return b"".join(kept)


def _copy(source: int, is_ready: threading.Event) -> None:
    """Pass on what the JVM prints, until it ends; a line begun before the JVM is ready waits."""
    begun = b""
    while chunk := os.read(source, _CHUNK_BYTES):
        if is_ready.is_set():
            _print(begun + chunk)
            begun = b""
            continue
        lines, newline, begun = (begun + chunk).rpartition(b"\n")
        _print(without_greetings(lines + newline))
    _print(begun)
    os.close(source)


def _print(text: bytes) -> None:
    """Onto this process's stderr; if that is closed, the JVM must still not wait for a reader."""
    try:
        while text:
            text = text[os.write(_STDERR, text) :]
    except OSError:
        return
