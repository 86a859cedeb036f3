"""A client's history, written line by line while it is made, so that a killed client leaves it."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Op:
    """An operation under way."""

    number: int
    kind: str


class Recorder:
    """Safe from any thread; client libraries call back from their own."""

    def __init__(self, path: Path, process: str) -> None:
        self.process = process
        self._file = path.open("a", buffering=1)
        self._lock = threading.Lock()
        self._count = 0

    def invoke(self, kind: str, **facts: Any) -> Op:
        """Write down that something is about to be asked for."""
        with self._lock:
            return self._begin(kind, time.monotonic_ns(), facts)

    def ok(self, op: Op, **facts: Any) -> None:
        """It happened."""
        self._end(op, "ok", facts)

    def fail(self, op: Op, **facts: Any) -> None:
        """It certainly did not happen."""
        self._end(op, "fail", facts)

    def info(self, op: Op, **facts: Any) -> None:
        """Nobody knows whether it happened."""
        self._end(op, "info", facts)

    def look(self, kind: str, invoked_ns: int, **facts: Any) -> None:
        """Write down what was seen; looks that saw nothing need no line."""
        with self._lock:
            op = self._begin(kind, invoked_ns, {})
            self._write(op, "ok", time.monotonic_ns(), facts)

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _begin(self, kind: str, at_ns: int, facts: Mapping[str, Any]) -> Op:
        self._count += 1
        op = Op(self._count, kind)
        self._write(op, "invoke", at_ns, facts)
        return op

    def _end(self, op: Op, outcome: str, facts: Mapping[str, Any]) -> None:
        with self._lock:
            self._write(op, outcome, time.monotonic_ns(), facts)

    def _write(self, op: Op, outcome: str, at_ns: int, facts: Mapping[str, Any]) -> None:
        event = {
            "process": self.process,
            "op": op.number,
            "type": outcome,
            "kind": op.kind,
            "at_ns": at_ns,
            "facts": facts,
        }
        self._file.write(json.dumps(event) + "\n")
