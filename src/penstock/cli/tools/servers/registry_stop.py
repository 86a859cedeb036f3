"""schema-registry-stop: asks the schema registries of this machine to stop in good order.

Like Confluent's script it finds them in the process table: a process counts as a registry when its
command line runs `penstock registry` or `schema-registry-start`.
"""

import os
from collections.abc import Sequence

from penstock.cli.parser import ToolParser
from penstock.cli.running import processes, terminate
from penstock.errors import CommandError

_COMMANDS = ("registry", "schema-registry-start")


def main(argv: Sequence[str]) -> int:
    ToolParser("schema-registry-stop", "Stop the schema registries of this machine.").parse(argv)
    found = [
        pid
        for pid, words in processes("the registry's process")
        if is_registry(words) and pid != os.getpid()
    ]
    if not found:
        raise CommandError("No schema registry to stop")
    for pid in found:
        terminate(pid, "schema registry")
    return 0


def is_registry(words: Sequence[str]) -> bool:
    """Whether a command line is that of a registry, as an interpreter or a script runs it."""
    names = [word.rpartition("/")[2].removesuffix(".sh") for word in words]
    for at, name in enumerate(names[:4]):
        if name == "schema-registry-start":
            return True
        if name in ("penstock", "penstock.cli.main") or words[at].endswith("penstock/cli/main.py"):
            return bool(names[at + 1 : at + 2]) and names[at + 1] in _COMMANDS
    return False
