"""`penstock sql server`, ksqlDB's ksql-server-start: read the settings, then be the SQL server.

The process itself is sql/service/process.py.
"""

import asyncio
from collections.abc import Sequence

from penstock.cli.tools.servers.service import settings_of

_ABOUT = "Start a SQL server: penstock sql server FILE.properties"


def main(argv: Sequence[str]) -> int:
    settings = settings_of("ksql-server-start", _ABOUT, argv)
    from penstock.sql.service.settings import SqlConfig
    from penstock.telemetry.logs import set_up_logging

    config = SqlConfig.of(settings)
    set_up_logging()
    from penstock.sql.service.process import run

    asyncio.run(run(config))
    return 0
