"""A mirror between two clusters as a process, and the file that it reads."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.processes import python

from penstock.config.properties import format_properties, parse_properties

FAST = {
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "refresh.topics.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
    "transaction.boundary.interval.ms": "50",
}


def settings(a: str, b: str, **more: str) -> dict[str, str]:
    """A file for clusters A and B; `__` in a name stands for a dot, `_TO_` for an arrow."""
    given = {name.replace("_TO_", "->").replace("__", "."): text for name, text in more.items()}
    return {
        "clusters": "A, B",
        "A.bootstrap.servers": a,
        "B.bootstrap.servers": b,
        "A->B.enabled": "true",
        **FAST,
        **given,
    }


class MirrorProcess:
    """`penstock mirror` as a process with Spark."""

    def __init__(self, directory: Path, given: Mapping[str, str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / "mm2.properties"
        self.file.write_text(format_properties(given))
        assert parse_properties(self.file.read_text()) == dict(given)
        self.log = directory / "mirror.log"
        self.command = [python(), "-m", "penstock.cli.main", "mirror", str(self.file)]
        self.command += ["--state", str(directory)]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=log, env=dict(os.environ), start_new_session=True
            )

    def kill(self) -> None:
        """kill -9 of the process itself; Spark's own end when they notice."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(120)

    def __enter__(self) -> "MirrorProcess":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
