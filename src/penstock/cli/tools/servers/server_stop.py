"""kafka-server-stop: asks the brokers of this machine to stop in good order.

Like Kafka's script it finds them in the process table, so it needs no address. A process counts as
a broker when its command line runs `penstock server` or `kafka-server-start`; `--node-id` picks
the one whose settings have that id.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser
from penstock.cli.running import processes, terminate
from penstock.config.properties import read_properties
from penstock.errors import CommandError, ConfigError

_DEFAULT_ID = "0"


def main(argv: Sequence[str]) -> int:
    parser = ToolParser("kafka-server-stop", "Stop the brokers of this machine.")
    parser.add_argument("--node-id", metavar="id", help="Stop only the broker with this id.")
    parser.add_argument("--process-role", choices=("broker", "controller"), help="Accepted.")
    options = parser.parse(argv)
    found = [
        pid
        for pid, words in processes("the broker's process")
        if is_broker(words)
        and pid != os.getpid()
        and options.node_id in (None, broker_id(words, _directory(pid)))
    ]
    found = without_supervised(found, parent_of)
    if not found:
        raise CommandError("No kafka server to stop")
    for pid in found:
        terminate(pid, "broker")
    return 0


def without_supervised(pids: Sequence[int], parent_of: Callable[[int], int]) -> list[int]:
    """Those whose supervisor is among them are left to it: a second signal would cut them off."""
    return [pid for pid in pids if parent_of(pid) not in pids]


def parent_of(pid: int) -> int:
    """The process that started it; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def is_broker(words: Sequence[str]) -> bool:
    """Whether a command line is that of a broker, as an interpreter or a script runs it."""
    return _arguments(words) is not None


def broker_id(words: Sequence[str], directory: Path) -> str:
    """The id in a broker's settings: of its overrides, else of its file, else the default."""
    settings: dict[str, str] = {}
    arguments = _arguments(words) or []
    files = [word for at, word in enumerate(arguments) if _is_file(arguments, at)]
    for file in files[:1]:
        try:
            settings.update(read_properties(directory / file))
        except ConfigError:
            continue  # It may have been moved since the broker read it.
    for at, word in enumerate(arguments):
        given = arguments[at + 1 : at + 2] if word in ("--override", "-override") else []
        for setting in given or [word.partition("override=")[2]]:
            key, _, value = setting.partition("=")
            settings[key] = value
    return settings.get("node.id") or settings.get("broker.id") or _DEFAULT_ID


def _arguments(words: Sequence[str]) -> list[str] | None:
    """What follows the name of the broker's command; None if it is another command."""
    names = [word.rpartition("/")[2].removesuffix(".sh") for word in words]
    for at, name in enumerate(names[:4]):
        if name == "kafka-server-start":
            return list(words[at + 1 :])
        if name in ("penstock", "penstock.cli.main") or words[at].endswith("penstock/cli/main.py"):
            is_server = names[at + 1 : at + 2] in (["server"], ["kafka-server-start"])
            return list(words[at + 2 :]) if is_server else None
    return None


def _is_file(arguments: Sequence[str], at: int) -> bool:
    before = arguments[at - 1] if at else ""
    takes_value = before.lstrip("-") in ("override", "log-level") and "=" not in before
    return bool(arguments[at]) and not arguments[at].startswith("-") and not takes_value


def _directory(pid: int) -> Path:
    """Where a process was started: its file may be named relative to that."""
    try:
        return Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        return Path()
