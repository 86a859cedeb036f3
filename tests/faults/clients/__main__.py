"""One client process: a family, a role, and a file for its history.

SIGTERM tells it to finish what it has begun and to end.
"""

import argparse
import importlib
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import cast

from tests.faults.clients.family import Family
from tests.faults.clients.recorder import Recorder
from tests.faults.clients.roles import ROLES

FAMILIES = {"confluent-kafka": "confluent", "aiokafka": "aio", "kafka-python": "pure"}


def main() -> int:
    options = parsed()
    logging.basicConfig(
        level=os.environ.get("FAULT_CLIENT_LOG", "WARNING"),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    family = cast(
        Family, importlib.import_module(f"tests.faults.clients.{FAMILIES[options.family]}")
    )
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    recorder = Recorder(options.history, options.process)
    ROLES[options.role](family, options, recorder, stopping).run()
    sys.stdout.flush()
    # Libraries leave threads behind that would wait for a cluster in trouble; the story is told.
    os._exit(0)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.clients", description=__doc__)
    parser.add_argument("--family", choices=sorted(FAMILIES), required=True)
    parser.add_argument("--role", choices=sorted(ROLES), required=True)
    parser.add_argument("--process", required=True, help="name of this client in the history")
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--output", default="", help="topic that a pipe writes to")
    parser.add_argument("--partitions", type=int, required=True)
    parser.add_argument("--history", type=Path, required=True)
    parser.add_argument("--base", type=int, default=0, help="values begin above this number")
    parser.add_argument("--rate", type=float, default=200.0, help="records a second")
    parser.add_argument("--acks", choices=["all", "1"], default="all")
    parser.add_argument("--not-idempotent", dest="is_idempotent", action="store_false")
    parser.add_argument("--isolation", default="read_uncommitted")
    parser.add_argument("--group", default=None)
    parser.add_argument("--delivery-ms", type=int, default=60_000)
    parser.add_argument("--transaction-ms", type=int, default=20_000)
    parser.add_argument("--seed", default="0")
    parser.add_argument(
        "--settings",
        type=json.loads,
        default={},
        help="of a secured cluster, in librdkafka's names",
    )
    options = parser.parse_args()
    if options.settings and options.family != "confluent-kafka":
        parser.error(f"{options.family} does not take the settings of librdkafka")
    return options


if __name__ == "__main__":
    sys.exit(main())
