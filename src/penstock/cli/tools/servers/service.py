"""The command line of a service: a properties file, overrides, and how much to print."""

import os
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser, key_values


def settings_of(name: str, about: str, argv: Sequence[str]) -> dict[str, str]:
    """What the words say is to hold; logs are printed as they want from here on."""
    options = _parser(name, about).parse(argv)
    if options.log_level:
        os.environ["PENSTOCK_LOG"] = options.log_level
    from penstock.config.properties import read_properties

    given = read_properties(Path(options.file)) if options.file else {}
    return given | key_values(options.override, "--override")


def _parser(name: str, about: str) -> ToolParser:
    parser = ToolParser(name, about)
    parser.add_argument("file", nargs="?", help="a properties file with Confluent's settings")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="key=value",
        help="A setting that overrides the properties file. May be given many times.",
    )
    parser.add_argument(
        "--log-level",
        metavar="LEVEL or logger=LEVEL,...",
        help="How much to print: DEBUG, INFO, WARN or ERROR, for all or by logger.",
    )
    return parser
