"""`penstock up`: the broker and the services beside it by one command, until Ctrl-C.

The supervisor is platform/tree.py; here its options are read and what it says is printed.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser
from penstock.cli.tools.platform.options import (
    add_file,
    add_override,
    directory_given,
    settings_given,
)
from penstock.cli.tools.platform.supervising import run_tree, up_lines

_START_S = 120.0


def main(argv: Sequence[str]) -> int:
    options = _parser().parse(argv)
    return _start_in_background(options, argv) if options.detach else _run(options)


def _run(options: argparse.Namespace) -> int:
    from penstock.cli.stopping import stop_and_hurry_on_signals
    from penstock.platform.settings import platform_settings

    events = stop_and_hurry_on_signals()
    directory = directory_given(options)
    given = settings_given(options)
    settings = platform_settings(given, directory.path, _count(options, given, directory.path))
    where = f"Data and logs are in {directory.path}. Ctrl-C stops it."
    return run_tree(settings, where, events)


def _count(options: argparse.Namespace, given: Mapping[str, str], directory: Path) -> int:
    """How many brokers: as somebody said, or as many as the machine can use."""
    from penstock.platform.brokers import checked_count, count_for
    from penstock.platform.child import cores, machine_memory_bytes
    from penstock.platform.settings import PROCESS_COUNT, broker_dirs

    asked = options.processes or given.get(PROCESS_COUNT, "").strip()
    if asked:
        return checked_count(asked)
    if given.get("zookeeper.connect"):
        return 1
    return count_for(cores(), machine_memory_bytes(), broker_dirs(given, directory))


def _start_in_background(options: argparse.Namespace, argv: Sequence[str]) -> int:
    """Start ourselves again without a terminal, and wait until that one is up or has ended."""
    import subprocess

    from penstock.errors import CommandError
    from penstock.platform.child import end_of, penstock_command, wait_until

    began_s = time.monotonic()
    directory = directory_given(options)
    log = directory.log_of("up")
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [word for word in argv if word not in ("-d", "--detach", "-detach")]
    with log.open("ab") as out:
        since = out.tell()
        process = subprocess.Popen(
            penstock_command("up", *words),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def has_settled() -> bool:
        state = directory.state()
        is_up = state is not None and state.is_up and state.supervisor.pid == process.pid
        return is_up or process.poll() is not None

    if not wait_until(has_settled, timeout_s=_START_S):
        raise CommandError(f"Not everything answers after {_START_S:g} s; see {log}.")
    if process.poll() is not None:
        raise CommandError(end_of(log, since=since))
    state = directory.state()
    for line in () if state is None else up_lines(state, took_s=time.monotonic() - began_s):
        print(line)
    print("It goes on in the background: `penstock status` shows it, `penstock down` stops it.")
    return 0


def _parser() -> ToolParser:
    parser = ToolParser(
        "penstock up",
        "Start broker, schema registry and REST proxy, and what else the file names in services=: "
        "penstock up [FILE.properties]",
    )
    add_file(parser)
    add_override(parser)
    parser.add_argument(
        "--processes",
        metavar="count",
        help="How many brokers to start, on ports and with ids in a row. (default: what the file "
        "says in processes=, else what the directory has, else half of the cores from four on)",
    )
    parser.add_argument(
        "--detach", "-d", action="store_true", help="Go on in the background once all answer."
    )
    return parser
