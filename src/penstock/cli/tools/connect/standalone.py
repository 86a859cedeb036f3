"""connect-standalone: one worker, its connectors in files, its offsets in a file.

The process itself is connect/process.py.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser

_ABOUT = "Start a Connect worker: connect-standalone worker.properties [connector.properties ...]"


def main(argv: Sequence[str]) -> int:
    parser = ToolParser("connect-standalone", _ABOUT)
    parser.add_argument("worker", help="a properties file with Kafka's settings of a worker")
    parser.add_argument("connectors", nargs="*", help="properties files, one for each connector")
    options = parser.parse(argv)
    from penstock.connect.process import run
    from penstock.connect.settings import WorkerSettings
    from penstock.telemetry.logs import set_up_logging

    settings = WorkerSettings.standalone(_read(options.worker))
    connectors = [_read(name) for name in options.connectors]
    set_up_logging()
    asyncio.run(run(settings, connectors))
    return 0


def _read(name: str) -> dict[str, str]:
    from penstock.config.properties import read_properties

    return dict(read_properties(Path(name)))
