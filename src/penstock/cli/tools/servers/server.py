"""`penstock server`, Kafka's kafka-server-start: read the settings, then be the broker.

Settings come from a properties file, if one is given, and from `--override key=value`. The process
itself is broker/server.py. With `--processes` this process is the supervisor of several brokers
(platform/tree.py), each started by this same command.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser, key_values

if TYPE_CHECKING:
    from penstock.broker.validation.port import Validator
    from penstock.config.broker import BrokerConfig


def main(argv: Sequence[str]) -> int:
    options = _parser().parse(argv)
    if options.daemon:
        return _start_in_background(options)
    if options.log_level:
        os.environ["PENSTOCK_LOG"] = options.log_level
    if options.processes is not None:
        return _supervise(options)
    from penstock.broker.server import main as serve
    from penstock.config.broker import load

    file = Path(options.file) if options.file else None
    return serve(load(file, key_values(options.override, "--override")), _open_validator)


def _supervise(options: argparse.Namespace) -> int:
    from penstock.cli.stopping import stop_and_hurry_on_signals
    from penstock.cli.tools.platform.supervising import run_tree
    from penstock.config.broker import BrokerConfig
    from penstock.config.processes import PROCESSES
    from penstock.config.properties import read_properties
    from penstock.platform.brokers import checked_count
    from penstock.platform.settings import broker_settings

    events = stop_and_hurry_on_signals()
    given = read_properties(Path(options.file)) if options.file else {}
    given |= key_values(options.override, "--override")
    count = checked_count(options.processes)
    directory = BrokerConfig(given).log_dirs[0].absolute() / PROCESSES
    settings = broker_settings(given, directory, count)
    where = f"What they print is in {directory / 'logs'}. Ctrl-C stops them in turn."
    return run_tree(settings, where, events)


def _open_validator(config: "BrokerConfig") -> "Validator":
    """What knows schemas, loaded when a topic first asks for it."""
    from penstock.schemas.checking.validator import SchemaValidator

    return SchemaValidator.of(config)


def _parser() -> ToolParser:
    parser = ToolParser("kafka-server-start", "Start a broker: penstock server [FILE.properties]")
    parser.add_argument("file", nargs="?", help="a properties file; without it, the defaults")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="key=value",
        help="A setting that overrides the properties file. May be given many times.",
    )
    parser.add_argument(
        "--processes",
        metavar="count",
        help="Start so many brokers that share their metadata, with ids, ports and directories in "
        "a row, and start again what dies.",
    )
    parser.add_argument(
        "--daemon",
        action="store_true",
        help="Start in the background; what it prints goes to logs/kafkaServer.out, or to the "
        "directory that the environment variable LOG_DIR names.",
    )
    parser.add_argument(
        "--log-level",
        metavar="LEVEL or logger=LEVEL,...",
        help="How much to print: DEBUG, INFO, WARN or ERROR, for all or by logger.",
    )
    return parser


def _start_in_background(options: argparse.Namespace) -> int:
    import subprocess

    command = [sys.executable, "-m", "penstock.cli.main", "server"]
    command += [options.file] if options.file else []
    for word in options.override:
        command += ["--override", word]
    if options.processes is not None:
        command += ["--processes", options.processes]
    if options.log_level:
        command += ["--log-level", options.log_level]
    directory = Path(os.environ.get("LOG_DIR", "logs"))
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "kafkaServer.out").open("ab") as out:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return 0
