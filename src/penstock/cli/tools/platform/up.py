"""`penstock up`: broker, schema registry and REST proxy by one command, until Ctrl-C.

The supervisor is platform/tree.py; here its options are read and what it says is printed.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser
from penstock.cli.tools.platform.options import (
    add_file,
    add_override,
    directory_given,
    settings_given,
)

if TYPE_CHECKING:
    from penstock.platform.state import TreeState

_HURRIED = 130  # What a shell tells of a program that Ctrl-C ended.
_START_S = 120.0


def main(argv: Sequence[str]) -> int:
    options = _parser().parse(argv)
    return _start_in_background(options, argv) if options.detach else _run(options)


def up_lines(state: "TreeState", *, took_s: float) -> Iterator[str]:
    """Where everything is, once everything answers."""
    rows = [
        (door.service, door.address, process.identity.pid if process.identity else 0)
        for process in state.processes
        for door in process.doors
    ]
    names = max(len(service) for service, _, _ in rows)
    places = max(len(address) for _, address, _ in rows)
    for service, address, pid in rows:
        yield f"{service:<{names}}  {address:<{places}}  process {pid}"
    yield f"Everything answers after {took_s:.1f} s."


def _run(options: argparse.Namespace) -> int:
    from penstock.cli.stopping import stop_and_hurry_on_signals
    from penstock.platform.settings import platform_settings
    from penstock.platform.tree import ProcessTree

    events = stop_and_hurry_on_signals()
    began_s = time.monotonic()
    directory = directory_given(options)
    settings = platform_settings(settings_given(options), directory.path)
    for warning in settings.warnings:
        print(f"warning: {warning}", flush=True)

    def show_up(state: "TreeState") -> None:
        for line in up_lines(state, took_s=time.monotonic() - began_s):
            print(line, flush=True)
        print(f"Data and logs are in {directory.path}. Ctrl-C stops it.", flush=True)

    tree = ProcessTree(settings, report=_tell, on_up=show_up)
    tree.run(events.stop, events.hurry)
    if events.hurry.is_set():
        return _HURRIED
    print("Stopped.", flush=True)
    return 0


def _tell(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


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
        "penstock up", "Start broker, schema registry and REST proxy: penstock up [FILE.properties]"
    )
    add_file(parser)
    add_override(parser)
    parser.add_argument(
        "--detach", "-d", action="store_true", help="Go on in the background once all answer."
    )
    return parser
