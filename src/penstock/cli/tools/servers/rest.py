"""`penstock rest`, Confluent's kafka-rest-start: read the settings, then be the REST proxy.

The process itself is rest/process.py.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser, key_values


def main(argv: Sequence[str]) -> int:
    options = _parser().parse(argv)
    if options.log_level:
        os.environ["PENSTOCK_LOG"] = options.log_level
    from penstock.config.properties import read_properties
    from penstock.rest.config import RestConfig
    from penstock.rest.process import run
    from penstock.telemetry.logs import set_up_logging

    given = read_properties(Path(options.file)) if options.file else {}
    config = RestConfig.of(given | key_values(options.override, "--override"))
    set_up_logging()
    asyncio.run(run(config))
    return 0


def _parser() -> ToolParser:
    parser = ToolParser("kafka-rest-start", "Start a REST proxy: penstock rest FILE.properties")
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
