"""Builds the extension of the C files here with the compiler that is there.

    python -m penstock.native.build

Set-up runs this, and it never fails: without a compiler or Python's headers it says so, and the
platform runs on its Python alone.
"""

import argparse
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.native import MODULE

SOURCES: Final = tuple(
    Path(__file__).with_name(name) for name in ("codec.c", "compaction.c", "records.c")
)
_OPTIONS: Final = ("-O2", "-shared", "-fPIC", "-Wall", "-Wextra")


class CannotBuild(Exception):
    """There is no compiler, or it fails; the message is for whoever sets the platform up."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m penstock.native.build", description=__doc__)
    parser.add_argument("--into", type=Path, default=Path(sysconfig.get_path("platlib")))
    target = target_in(parser.parse_args(argv).into)
    try:
        if not is_current(target):
            build(target)
            print(f"setup: built {target.name}")
    except (CannotBuild, OSError) as error:
        print(
            f"setup: small requests, compaction and reading cost more, without native code: {error}"
        )
    return 0


def target_in(directory: Path) -> Path:
    """Where the extension lies for this Python."""
    return directory / f"{MODULE}{sysconfig.get_config_var('EXT_SUFFIX') or '.so'}"


def is_current(target: Path) -> bool:
    return target.exists() and all(
        target.stat().st_mtime >= source.stat().st_mtime for source in SOURCES
    )


def build(target: Path) -> None:
    """Compile it beside its place and move it there: nobody ever loads half of it."""
    compiler = shutil.which("cc")
    include = Path(sysconfig.get_path("include"))
    if compiler is None:
        raise CannotBuild("no C compiler (cc)")
    if not (include / "Python.h").exists():
        raise CannotBuild(f"no Python.h in {include}")
    with tempfile.TemporaryDirectory(dir=target.parent) as directory:
        made = Path(directory) / target.name
        command = [compiler, *_OPTIONS, f"-I{include}", *map(str, SOURCES), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise CannotBuild(f"cc failed: {done.stderr.strip()[-300:]}")
        made.replace(target)


if __name__ == "__main__":
    sys.exit(main())
