"""`penstock rest`, Confluent's kafka-rest-start: read the settings, then be the REST proxy.

The process itself is rest/process.py.
"""

import asyncio
from collections.abc import Sequence

from penstock.cli.tools.servers.service import settings_of

_ABOUT = "Start a REST proxy: penstock rest FILE.properties"


def main(argv: Sequence[str]) -> int:
    settings = settings_of("kafka-rest-start", _ABOUT, argv)
    from penstock.rest.config import RestConfig
    from penstock.rest.process import run
    from penstock.telemetry.logs import set_up_logging

    config = RestConfig.of(settings)
    set_up_logging()
    asyncio.run(run(config))
    return 0
