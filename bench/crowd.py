"""Many clients at once: the compiled generators crowd.c and tail.c, built where they are needed."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import ROOT, ServerProcess

from bench.load import Shape
from bench.subjects import LOAD_SECONDS_MAX, Round

SOURCES = ROOT / "bench"
UNCHECKED = -1
FETCH_BYTES = 65_536  # What a consumer at the end of the log may get at once.


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """So many connections, each with one request under way, for so long."""

    connections: int
    frames: Sequence[bytes]  # Connection i sends frame i modulo their number.
    error_at: int = UNCHECKED  # Where an answer has its error code.
    warm_s: float = 2.0
    seconds: float = 10.0

    def run(self, programs: Path, server: ServerProcess) -> Round:
        """The load against one server."""
        numbers = [self.connections, self.warm_s, self.seconds, self.error_at]
        return _run(programs / "crowd", server, numbers, self.frames, self.warm_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """So many consumers at the end of a topic's partitions, and so many records a second."""

    consumers: int
    shape: Shape
    records_per_s: int
    warm_s: float = 2.0
    seconds: float = 10.0

    def run(self, programs: Path, server: ServerProcess) -> Round:
        """The load against one server; what it counts as requests are deliveries."""
        fetches = [
            self.shape.fetch_frame_of(partition, FETCH_BYTES)
            for partition in range(self.shape.partitions)
        ]
        numbers = [
            self.consumers,
            self.records_per_s,
            self.warm_s,
            self.seconds,
            self.shape.fetch_offset_at(),
            self.shape.fetch_lead_bytes(),
            self.shape.produce_error_at(),
        ]
        frames = [*fetches, *self.shape.produce_frames()]
        return _run(programs / "tail", server, numbers, frames, self.warm_s)


def _run(
    program: Path,
    server: ServerProcess,
    numbers: Sequence[float],
    frames: Sequence[bytes],
    warm_s: float,
) -> Round:
    """Run a generator; of the server's processor time it gets the share that is counted."""
    before_s = server.cpu_seconds()
    done = subprocess.run(
        [str(program), str(server.port), *map(str, numbers)],
        input=b"".join(frames),
        capture_output=True,
        timeout=LOAD_SECONDS_MAX,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the crowd failed: {done.stderr.decode()}\n{server.log_end}")
    used_s, measured = server.cpu_seconds() - before_s, json.loads(done.stdout)
    counted = measured["seconds"] / (measured["seconds"] + warm_s)
    return Round(server_cpu_s=used_s * counted, **measured)


def built(directory: Path) -> Path:
    """The directory with the generators, compiled; RuntimeError where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise RuntimeError("there is no C compiler (cc) for the crowd's load generators")
    for name in ("crowd", "tail"):
        source = SOURCES / f"{name}.c"
        subprocess.run([compiler, "-O2", "-o", str(directory / name), str(source)], check=True)
    return directory
