"""connect-distributed: a worker whose connectors, offsets and statuses are in topics.

The process itself is connect/process.py.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser

_ABOUT = "Start a Connect worker: connect-distributed worker.properties"


def main(argv: Sequence[str]) -> int:
    parser = ToolParser("connect-distributed", _ABOUT)
    parser.add_argument("worker", help="a properties file with Kafka's settings of a worker")
    options = parser.parse(argv)
    from penstock.config.properties import read_properties
    from penstock.connect.process import run
    from penstock.connect.settings import WorkerSettings
    from penstock.telemetry.logs import set_up_logging

    settings = WorkerSettings.distributed(read_properties(Path(options.worker)))
    set_up_logging()
    asyncio.run(run(settings))
    return 0
