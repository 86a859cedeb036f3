"""`penstock status`: what `penstock up` has running, where, since when, and how it is."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser
from penstock.cli.tools.platform.options import add_file, directory_given
from penstock.errors import CommandError

if TYPE_CHECKING:
    from penstock.platform.looking import SeenTree

_COLUMNS = ("service", "address", "state", "since", "restarts", "process", "memory")


def main(argv: Sequence[str]) -> int:
    parser = ToolParser(
        "penstock status",
        "Show the platform that runs in a directory; the code is 1 if something is down.",
    )
    add_file(parser)
    options = parser.parse(argv)
    from penstock.platform.looking import look, problems

    directory = directory_given(options)
    seen = look(directory)
    if seen is None:
        raise CommandError(f"Nothing runs in {directory.path}.")
    for line in status_lines(seen):
        print(line)
    wrong = problems(seen)
    if wrong:
        print("\nWhat is wrong:")
    for sentence in wrong:
        print(f"  {sentence}")
    return 1 if wrong else 0


def status_lines(seen: "SeenTree") -> Iterator[str]:
    """A table, with a line for each address and one for all together."""
    rows = [_COLUMNS, *_rows(seen)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _rows(seen: "SeenTree") -> Iterator[tuple[str, ...]]:
    from penstock.platform.looking import word_of

    for process in seen.processes:
        state = process.state
        pid = "-" if state.identity is None else str(state.identity.pid)
        for door in state.doors:
            word = word_of(process, door)
            facts = (_clock(state.started_ms), str(state.restarts), pid, _mb(process.memory_bytes))
            yield (door.service, door.address, word, *facts)
    supervisor = "up" if seen.is_supervised else "down"
    since, pid = _clock(seen.state.started_ms), str(seen.state.supervisor.pid)
    yield ("supervisor", "-", supervisor, since, "-", pid, _mb(seen.memory_bytes))
    yield ("together", "", "", "", "", "", _mb(seen.total_bytes))


def _clock(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1000))


def _mb(size: int | None) -> str:
    return "-" if size is None else f"{size / 1e6:.0f} MB"
