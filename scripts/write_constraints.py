"""Write constraints.txt: the versions of all that Penstock with its extras needs, as installed now.

Packages that merely happen to be in the virtual environment are left out, so that an experiment
with pip never becomes a dependency by accident.
"""

import re
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
TITLE = """\
# The exact versions that `make setup` installs and CI tests.
# Write it anew with `make constraints` after changing a dependency in pyproject.toml.
"""


def needed(name: str, extra: str, found: dict[str, str]) -> None:
    """Add the distribution and all that it requires to `found`."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in found:
        return
    installed = distribution(name)
    found[key] = installed.version
    for text in installed.requires or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            needed(requirement.name, "", found)


def main() -> None:
    """Write the file."""
    found: dict[str, str] = {}
    for extra in ("dev", "java", "protoc"):
        needed("penstock", extra, found)
        del found["penstock"]
    lines = [f"{name}=={version}\n" for name, version in sorted(found.items())]
    (ROOT / "constraints.txt").write_text(TITLE + "".join(lines))


if __name__ == "__main__":
    main()
