"""`penstock services`: registry, REST proxy and whatever else is light, in this one process.

The process itself is platform/services/process.py. `penstock up` starts it beside the broker.
"""

import asyncio
import os
from collections.abc import Sequence

from penstock.cli.parser import ToolParser
from penstock.cli.tools.platform.options import add_file, add_override, settings_given


def main(argv: Sequence[str]) -> int:
    options = _parser().parse(argv)
    if options.log_level:
        os.environ["PENSTOCK_LOG"] = options.log_level
    from penstock.errors import ConfigError
    from penstock.platform.services.process import run
    from penstock.platform.settings import CHOICE, directory_in, platform_settings
    from penstock.telemetry.logs import set_up_logging

    given = settings_given(options)
    settings = platform_settings(given, directory_in(given))
    if not settings.services:
        raise ConfigError(f"{CHOICE} has no service that runs here: a broker is `penstock server`")
    set_up_logging()
    asyncio.run(run(settings))
    return 0


def _parser() -> ToolParser:
    parser = ToolParser(
        "penstock services",
        "Run the schema registry and the REST proxy in one process: "
        "penstock services FILE.properties",
    )
    add_file(parser, directory=False)
    add_override(parser)
    parser.add_argument(
        "--log-level",
        metavar="LEVEL or logger=LEVEL,...",
        help="How much to print: DEBUG, INFO, WARN or ERROR, for all or by logger.",
    )
    return parser
