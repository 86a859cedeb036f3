"""The state directory: where each pipeline's checkpoints, status and lock are.

    STATE/spark.log                    what Spark's own processes print
    STATE/pipelines/NAME/lock          held (flock) by the supervisor that runs it; its process id
    STATE/pipelines/NAME/status.json   the last status, written once a second while it runs
    STATE/pipelines/NAME/stop          another terminal asks the supervisor to stop it
    STATE/pipelines/NAME/checkpoints/  Spark's progress and state, one folder for each query

Plain files, so that `list`, `status` and `stop` work from another terminal, and after a crash.
"""

import contextlib
import fcntl
import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from penstock.errors import CommandError
from penstock.queries.status import QueryStatus

HOME_VARIABLE = "PENSTOCK_STATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """What is on disk of a pipeline: who runs it, from which file, and how its queries do."""

    name: str
    file: str
    bootstrap: str
    settings: dict[str, str] = field(default_factory=dict)  # Of the client; no secrets.
    pid: int
    master: str
    updated_ms: int
    queries: list[QueryStatus] = field(default_factory=list)


class StateDir:
    """The state of all pipelines of one user or project."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def chosen(cls, option: str | None) -> Self:
        """The directory that was given, or that of the environment, or ~/.penstock."""
        given = option or os.environ.get(HOME_VARIABLE)
        return cls(Path(given).expanduser() if given else Path.home() / ".penstock")

    @property
    def spark_log(self) -> Path:
        return self.path / "spark.log"

    def pipeline(self, name: str) -> "PipelineState":
        """The state of one pipeline, whether it ever ran or not."""
        return PipelineState(self.path / "pipelines" / name)

    def pipelines(self) -> list["PipelineState"]:
        """Those that ever ran, by name."""
        folder = self.path / "pipelines"
        found = sorted(folder.iterdir()) if folder.is_dir() else []
        return [PipelineState(child) for child in found if (child / "status.json").is_file()]

    def known(self, name: str) -> "PipelineState":
        """The state of a pipeline that ran at least once."""
        state = self.pipeline(name)
        if not (state.path / "status.json").is_file():
            names = ", ".join(one.name for one in self.pipelines()) or "none"
            raise CommandError(f"No pipeline {name!r} has run in {self.path}; known are: {names}.")
        return state


class PipelineState:
    """The folder of one pipeline."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_fd: int | None = None

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

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
                f"The pipeline {self.name} runs already, in process {holder}; stop it with: "
                f"penstock pipeline stop {self.name}"
            ) from None
        os.ftruncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())
        self._lock_fd = fd
        self.clear_stop()

    def unlock(self) -> None:
        """Let go; harmless if not held."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def is_running(self) -> bool:
        """Whether a living supervisor holds it; a crash releases the lock by itself."""
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

    def ask_to_stop(self) -> None:
        """Leave the request; the supervisor looks for it a few times a second."""
        (self.path / "stop").touch()

    def is_asked_to_stop(self) -> bool:
        return (self.path / "stop").exists()

    def clear_stop(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.path / "stop").unlink()

    def write_status(self, status: PipelineStatus) -> None:
        """Replace the status in one step, so that a reader never sees half of it."""
        self.path.mkdir(parents=True, exist_ok=True)
        fresh = self.path / f"status.json.{os.getpid()}"
        fresh.write_text(json.dumps(asdict(status), indent=1))
        fresh.replace(self.path / "status.json")

    def status(self) -> PipelineStatus:
        """The last status that was written."""
        file = self.path / "status.json"
        try:
            document = json.loads(file.read_text())
            queries = [QueryStatus(**_known(QueryStatus, one)) for one in document["queries"]]
            return PipelineStatus(**{**_known(PipelineStatus, document), "queries": queries})
        except (ValueError, TypeError, KeyError) as error:
            raise CommandError(f"{file} cannot be read: {error}") from error


def _known(
    kind: type[QueryStatus] | type[PipelineStatus], values: dict[str, Any]
) -> dict[str, Any]:
    """Without fields that a newer version may have written."""
    names = {one.name for one in fields(kind)}
    return {key: value for key, value in values.items() if key in names}
