"""zookeeper-shell: look at the nodes in ZooKeeper and change them, in its own shell's words.

With a command behind the address it runs that one and ends; without one it reads commands from
standard input. The commands are commands.py, the nodes meta/zookeeper/nodes.py.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.tools.zookeeper.commands import COMMANDS, show_event
from penstock.config.properties import read_properties
from penstock.errors import CommandError
from penstock.meta.store import (
    BadVersion,
    MetaError,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    OpFailed,
    SessionLost,
    StoreUnavailable,
)
from penstock.meta.zookeeper.nodes import ZkNodes
from penstock.meta.zookeeper.tls import zookeeper_tls

_USAGE = (
    "zookeeper-shell zookeeper_host:port[/path] [-zk-tls-config-file file] [command [arguments]]"
)
_TLS_FILE = ("-zk-tls-config-file", "--zk-tls-config-file")
_SENTENCES: dict[type[OpFailed], str] = {
    NoNode: "Node does not exist: {}",
    NodeExists: "Node already exists: {}",
    NotEmpty: "Node not empty: {}",
    BadVersion: "version No is not valid : {}",
    NoChildrenForEphemerals: "Ephemerals cannot have children: {}",
}


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if not words or words[0] in ("--help", "-h", "-help"):
        print(f"USAGE: {_USAGE}", "", *_help(), sep="\n", file=sys.stdout if words else sys.stderr)
        return 0 if words else 1
    if words[0] == "--version":
        from penstock import __version__

        print(__version__)
        return 0
    address, *command = words
    tls = None
    if command[:1] and command[0] in _TLS_FILE:
        if len(command) == 1:
            raise CommandError(f"{command[0]} needs the name of a file.\nUSAGE: {_USAGE}")
        tls, command = zookeeper_tls(read_properties(Path(command[1]))), command[2:]
    print(f"Connecting to {address}")
    with ZkNodes(address, tls=tls) as nodes:
        if not command:
            print("Welcome to ZooKeeper!")
        show_event("None", "null")
        return _run(nodes, command) if command else _converse(nodes, address)


def _converse(nodes: ZkNodes, address: str) -> int:
    """Commands from standard input until it ends or says quit."""
    is_terminal = sys.stdin.isatty()
    number = 0
    while True:
        if is_terminal:
            print(f"[zk: {address}(CONNECTED) {number}] ", end="", flush=True)
        line = sys.stdin.readline()
        try:
            words = shlex.split(line)
        except ValueError as error:
            print(f"{line.strip()}: {error}", file=sys.stderr)
            continue
        if not line or words[:1] in (["quit"], ["exit"]):
            return 0
        if words:
            _run(nodes, words)
            number += 1


def _run(nodes: ZkNodes, words: Sequence[str]) -> int:
    """One command; what it shows goes to standard output, what it refuses to standard error."""
    try:
        for line in _run_command(nodes, words):
            print(line)
    except (StoreUnavailable, SessionLost):
        raise
    except (CommandError, MetaError) as error:
        sys.stdout.flush()
        print(_sentence(error), file=sys.stderr, flush=True)
        return 1
    sys.stdout.flush()
    return 0


def _run_command(nodes: ZkNodes, words: Sequence[str]) -> list[str]:
    name, *rest = words
    if name == "help":
        return _help()
    command = COMMANDS.get(name)
    if command is None:
        known = "\n".join(_help())
        raise CommandError(f"{known}\nCommand not found: Command not found {name}")
    return command.run(nodes, command.sort(rest))


def _sentence(error: Exception) -> str:
    if isinstance(error, OpFailed):
        return _SENTENCES[type(error)].format(error.path)
    return str(error)


def _help() -> list[str]:
    usages = sorted({f"\t{command.usage}" for command in COMMANDS.values()})
    return ["ZooKeeper -server host:port cmd args", *usages, "\thelp", "\tquit"]
