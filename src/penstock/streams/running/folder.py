"""The folder of an application: who runs it, what it ran last, and the checkpoints of its stages.

FOLDER/lock             held (flock) by the process that runs it; its process id
FOLDER/topology.json    the plan that the checkpoints belong to
FOLDER/restore.json     what stages begin with that have no checkpoint, where state was lost
FOLDER/status.json      the last status, for `penstock streams status`
FOLDER/spark.log        what Spark's own processes print
FOLDER/stages/N/        Spark's progress and state of stage N
"""

import fcntl
import json
import os
import shutil
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from penstock.errors import CommandError
from penstock.queries.status import QueryStatus


class ApplicationFolder:
    """The state of one application on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_fd: int | None = None

    @property
    def spark_log(self) -> Path:
        """What Spark prints."""
        return self.path / "spark.log"

    def checkpoint(self, stage: int) -> Path:
        """Of one stage."""
        return self.path / "stages" / str(stage)

    def has_state(self) -> bool:
        """Whether any stage ever planned a batch here."""
        return any(self.path.glob("stages/*/offsets/*"))

    def lock(self) -> None:
        """Become the one that runs it; CommandError if another process does."""
        self.path.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(fd, 20).decode() or "another process"
            os.close(fd)
            raise CommandError(
                f"The application {self.path.name} runs already, in process {holder}, with the "
                f"state in {self.path}."
            ) from None
        os.ftruncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())
        self._lock_fd = fd

    def unlock(self) -> None:
        """Let go; harmless if not held."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def is_running(self) -> bool:
        """Whether a living process holds it; a crash releases the lock by itself."""
        if self._lock_fd is not None:
            return True
        try:
            fd = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def plan(self) -> dict[str, Any] | None:
        """The plan that the checkpoints belong to; None: nothing ran here."""
        return self._read("topology.json")

    def write_plan(self, plan: dict[str, Any]) -> None:
        """Remember the plan, before anything is done by it."""
        self._write("topology.json", plan)

    def restore_plan(self) -> dict[str, Any] | None:
        """What was found when state had been lost; None: it never was."""
        return self._read("restore.json")

    def write_restore_plan(self, plan: dict[str, Any]) -> None:
        """Remember it: stages use it one by one, also after another crash."""
        self._write("restore.json", plan)

    def statuses(self) -> dict[str, Any] | None:
        """The last status that was written; None: it never ran."""
        found = self._read("status.json")
        if found is None:
            return None
        names = {one.name for one in fields(QueryStatus)}
        found["stages"] = [
            QueryStatus(**{k: v for k, v in one.items() if k in names}) for one in found["stages"]
        ]
        return found

    def write_statuses(self, state: str, bootstrap: str, stages: list[QueryStatus]) -> None:
        """For `penstock streams status`, in another terminal or after the end."""
        document = {
            "state": state,
            "bootstrap": bootstrap,
            "pid": os.getpid(),
            "stages": [asdict(one) for one in stages],
        }
        self._write("status.json", document)

    def remove(self) -> None:
        """Forget all state; CommandError while it runs."""
        if self.is_running():
            raise CommandError(f"The application {self.path.name} runs; stop it first.")
        if self.path.is_dir():
            shutil.rmtree(self.path)

    def _read(self, name: str) -> dict[str, Any] | None:
        file = self.path / name
        if not file.is_file():
            return None
        try:
            found: dict[str, Any] = json.loads(file.read_text())
        except ValueError as error:
            raise CommandError(f"{file} cannot be read: {error}") from error
        return found

    def _write(self, name: str, document: dict[str, Any]) -> None:
        """Replace it in one step, so that a reader never sees half of it."""
        self.path.mkdir(parents=True, exist_ok=True)
        fresh = self.path / f"{name}.{os.getpid()}"
        fresh.write_text(json.dumps(document, indent=1))
        fresh.replace(self.path / name)
