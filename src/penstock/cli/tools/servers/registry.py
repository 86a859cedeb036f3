"""`penstock registry`, Confluent's schema-registry-start: read the settings, then be the registry.

The process itself is registry/service/process.py.
"""

import asyncio
from collections.abc import Sequence

from penstock.cli.tools.servers.service import settings_of

_ABOUT = "Start a schema registry: penstock registry FILE.properties"


def main(argv: Sequence[str]) -> int:
    settings = settings_of("schema-registry-start", _ABOUT, argv)
    from penstock.registry.service.config import RegistryConfig
    from penstock.registry.service.process import run
    from penstock.telemetry.logs import set_up_logging

    config = RegistryConfig.of(settings)
    set_up_logging()
    asyncio.run(run(config))
    return 0
