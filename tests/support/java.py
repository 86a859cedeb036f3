"""Java programs of the tests: compiled once against a set of jars, run as processes."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.processes import ROOT

CLASSES = ROOT / ".cache" / "classes"


def compiled(source: Path, jars: Path) -> str:
    """A class path with the program and its jars; javac runs only when the source changed."""
    mark = hashlib.sha256(source.read_bytes() + str(jars).encode()).hexdigest()[:16]
    target = CLASSES / f"{source.stem}-{mark}"
    if not target.exists():
        scratch = target.with_name(f"{target.name}.{os.getpid()}")
        scratch.mkdir(parents=True)
        command = ["javac", "-nowarn", "-Xlint:none", "-cp", f"{jars}/*", "-d", str(scratch)]
        done = subprocess.run([*command, str(source)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        try:
            scratch.rename(target)
        except OSError:  # Another test process was first with the same classes.
            shutil.rmtree(scratch)
    return f"{target}:{jars}/*"


def run_java(
    class_path: str,
    main: str,
    *arguments: str,
    timeout_s: float = 240,
    heap: str = "256m",
    options: Sequence[str] = (),
) -> str:
    """What the program printed; AssertionError with all of it when it failed."""
    command = ["java", f"-Xmx{heap}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += [*options, "-cp", class_path, main, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, f"{main} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout
