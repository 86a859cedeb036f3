"""A tree of processes run from a terminal: what it says is printed, signals end it."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.cli.stopping import StopEvents
    from penstock.platform.settings import PlatformSettings
    from penstock.platform.state import TreeState

_HURRIED = 130  # What a shell tells of a program that Ctrl-C ended.


def run_tree(settings: "PlatformSettings", where: str, events: "StopEvents") -> int:
    """Until a signal; `where` is told once everything answers. The exit code."""
    from penstock.platform.tree import ProcessTree

    began_s = time.monotonic()
    for warning in settings.warnings:
        print(f"warning: {warning}", flush=True)

    def show_up(state: "TreeState") -> None:
        for line in up_lines(state, took_s=time.monotonic() - began_s):
            print(line, flush=True)
        print(where, flush=True)

    ProcessTree(settings, report=_tell, on_up=show_up).run(events.stop, events.hurry)
    if events.hurry.is_set():
        return _HURRIED
    print("Stopped.", flush=True)
    return 0


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


def _tell(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)
