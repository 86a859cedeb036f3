"""The options that say which platform is meant, and what they lead to."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser, key_values

if TYPE_CHECKING:
    from penstock.platform.directory import PlatformDirectory


def add_file(parser: ToolParser, *, directory: bool = True) -> None:
    """FILE, --dir."""
    parser.add_argument("file", nargs="?", help="a properties file; without it, the defaults")
    if directory:
        parser.add_argument(
            "--dir",
            metavar="path",
            help="Where data, logs and the lock are. (default: what the file says in directory=, "
            "else penstock-data)",
        )


def add_override(parser: ToolParser) -> None:
    """--override."""
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="key=value",
        help="A setting that overrides the properties file. May be given many times.",
    )


def settings_given(options: argparse.Namespace) -> dict[str, str]:
    """The settings of the file and of the command line."""
    from penstock.config.properties import read_properties

    given = read_properties(Path(options.file)) if options.file else {}
    return given | key_values(getattr(options, "override", []), "--override")


def directory_given(options: argparse.Namespace) -> "PlatformDirectory":
    """The directory that is meant."""
    from penstock.platform.directory import PlatformDirectory
    from penstock.platform.settings import directory_in

    return PlatformDirectory(directory_in(settings_given(options), options.dir))
