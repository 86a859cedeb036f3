"""`penstock connect new NAME`: a project for a connector of one's own, with tests that pass."""

from collections.abc import Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser

_ABOUT = "Write a project with a source and a sink: penstock connect new NAME [--directory .]"


def main(argv: Sequence[str]) -> int:
    parser = ToolParser("penstock connect new", _ABOUT)
    parser.add_argument("name", help="small letters, digits and dashes")
    parser.add_argument("--directory", default=".", help="where its folder is made")
    options = parser.parse(argv)
    from penstock.connect.new_project import write_project

    for path in write_project(options.name, Path(options.directory)):
        print(path)
    print(f"next: cd {Path(options.directory) / options.name}; pip install -e '.[test]'; pytest")
    return 0
