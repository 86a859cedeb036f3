"""kafka-server-stop: asks the brokers of this machine to stop in good order.

Like Kafka's script it finds them in the process table, so it needs no address. A process counts as
a broker when its command line runs `penstock server` or `kafka-server-start`.
"""

import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser
from penstock.errors import CommandError


def main(argv: Sequence[str]) -> int:
    parser = ToolParser("kafka-server-stop", "Stop all brokers of this machine.")
    parser.parse(argv)
    found = [pid for pid, words in _processes() if is_broker(words) and pid != os.getpid()]
    if not found:
        raise CommandError("No kafka server to stop")
    for pid in found:
        _terminate(pid)
    return 0


def is_broker(words: Sequence[str]) -> bool:
    """Whether a command line is that of a broker, as an interpreter or a script runs it."""
    names = [word.rpartition("/")[2].removesuffix(".sh") for word in words]
    for at, name in enumerate(names[:4]):
        if name == "kafka-server-start":
            return True
        if name in ("penstock", "penstock.cli.main") or words[at].endswith("penstock/cli/main.py"):
            return names[at + 1 : at + 2] in (["server"], ["kafka-server-start"])
    return False


def _processes() -> Iterator[tuple[int, list[str]]]:
    for pid in _process_ids():
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue  # It ended while we looked.
        yield pid, line.decode(errors="replace").split("\0")


def _process_ids() -> Iterable[int]:
    proc = Path("/proc")
    if not proc.is_dir():
        raise CommandError("There is no /proc on this system; stop the broker's process by hand.")
    return sorted(int(entry.name) for entry in proc.iterdir() if entry.name.isdigit())


def _terminate(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise CommandError(f"The broker with process id {pid} belongs to another user.") from error
