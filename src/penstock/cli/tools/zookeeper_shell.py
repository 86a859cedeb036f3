"""zookeeper-shell: look at the nodes in ZooKeeper and change them, in its own shell's words.

With a command behind the address it runs that one and ends; without one it reads commands from
standard input. The nodes themselves are meta/zookeeper_nodes.py.
"""

import shlex
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.errors import CommandError
from penstock.meta.store import (
    ANY_VERSION,
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
from penstock.meta.zookeeper_nodes import NodeStat, ZkNodes

_USAGE = "zookeeper-shell zookeeper_host:port[/path] [command [arguments]]"
_SENTENCES: dict[type[OpFailed], str] = {
    NoNode: "Node does not exist: {}",
    NodeExists: "Node already exists: {}",
    NotEmpty: "Node not empty: {}",
    BadVersion: "version No is not valid : {}",
    NoChildrenForEphemerals: "Ephemerals cannot have children: {}",
}


class _Given(NamedTuple):
    """A command's words, sorted: flags without their dash, the version, the rest."""

    flags: frozenset[str]
    version: int
    words: tuple[str, ...]


class _Command(NamedTuple):
    usage: str
    words_min: int
    words_max: int
    run: Callable[[ZkNodes, _Given], list[str]]


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
    print(f"Connecting to {address}")
    with ZkNodes(address) as nodes:
        if not command:
            print("Welcome to ZooKeeper!")
        print("\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null", flush=True)
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
        for line in _carried_out(nodes, words):
            print(line)
    except (StoreUnavailable, SessionLost):
        raise
    except (CommandError, MetaError) as error:
        sys.stdout.flush()
        print(_sentence(error), file=sys.stderr, flush=True)
        return 1
    sys.stdout.flush()
    return 0


def _carried_out(nodes: ZkNodes, words: Sequence[str]) -> list[str]:
    name, *rest = words
    if name == "help":
        return _help()
    command = _COMMANDS.get(name)
    if command is None:
        known = "\n".join(_help())
        raise CommandError(f"{known}\nCommand not found: Command not found {name}")
    given = _sorted(command, rest)
    if not command.words_min <= len(given.words) <= command.words_max:
        raise CommandError(command.usage)
    return command.run(nodes, given)


def _sorted(command: _Command, words: list[str]) -> _Given:
    flags: set[str] = set()
    version = ANY_VERSION
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if rest or not word.startswith("-") or word == "-":
            rest.append(word)
        elif f"[{word} version]" in command.usage:
            number = next(waiting, "")
            if not number.lstrip("-").isdigit():
                raise CommandError(command.usage)
            version = int(number)
        elif f"[{word}]" in command.usage:
            flags.add(word[1:])
        else:
            raise CommandError(f"Unrecognized option: {word}\n{command.usage}")
    return _Given(frozenset(flags), version, tuple(rest))


def _sentence(error: Exception) -> str:
    if isinstance(error, OpFailed):
        return _SENTENCES[type(error)].format(error.path)
    return str(error)


def _help() -> list[str]:
    usages = sorted({f"\t{command.usage}" for command in _COMMANDS.values()})
    return ["ZooKeeper -server host:port cmd args", *usages, "\thelp", "\tquit"]


def _ls(nodes: ZkNodes, given: _Given) -> list[str]:
    (path,) = given.words
    if "R" in given.flags:
        return list(nodes.descend(path))
    lines = [f"[{', '.join(nodes.children(path))}]"]
    return lines + (stat_lines(nodes.get(path)[1]) if "s" in given.flags else [])


def _ls_with_stat(nodes: ZkNodes, given: _Given) -> list[str]:
    return _ls(nodes, given._replace(flags=frozenset("s")))


def _get(nodes: ZkNodes, given: _Given) -> list[str]:
    data, stat = nodes.get(given.words[0])
    text = "null" if data is None else data.decode(errors="replace")
    return [text, *(stat_lines(stat) if "s" in given.flags else [])]


def _stat(nodes: ZkNodes, given: _Given) -> list[str]:
    return stat_lines(nodes.get(given.words[0])[1])


def _create(nodes: ZkNodes, given: _Given) -> list[str]:
    path, *data = given.words
    made = nodes.create(
        path,
        data[0].encode() if data else b"",
        is_ephemeral="e" in given.flags,
        is_sequential="s" in given.flags,
    )
    return [f"Created {made}"]


def _set(nodes: ZkNodes, given: _Given) -> list[str]:
    path, data = given.words
    stat = nodes.set(path, data.encode(), given.version)
    return stat_lines(stat) if "s" in given.flags else []


def _delete(nodes: ZkNodes, given: _Given) -> list[str]:
    nodes.delete(given.words[0], given.version)
    return []


def _delete_all(nodes: ZkNodes, given: _Given) -> list[str]:
    for path in reversed(list(nodes.descend(given.words[0]))):
        nodes.delete(path)
    return []


def _count(nodes: ZkNodes, given: _Given) -> list[str]:
    return [str(sum(1 for _ in nodes.descend(given.words[0])) - 1)]


_COMMANDS = {
    "ls": _Command("ls [-s] [-R] path", 1, 1, _ls),
    "ls2": _Command("ls2 path", 1, 1, _ls_with_stat),
    "get": _Command("get [-s] path", 1, 1, _get),
    "stat": _Command("stat path", 1, 1, _stat),
    "create": _Command("create [-s] [-e] path [data]", 1, 2, _create),
    "set": _Command("set [-s] [-v version] path data", 2, 2, _set),
    "delete": _Command("delete [-v version] path", 1, 1, _delete),
    "deleteall": _Command("deleteall path", 1, 1, _delete_all),
    "rmr": _Command("rmr path", 1, 1, _delete_all),
    "getAllChildrenNumber": _Command("getAllChildrenNumber path", 1, 1, _count),
}


def stat_lines(stat: NodeStat) -> list[str]:
    """As ZooKeeper's shell prints a stat."""
    return [
        f"cZxid = {_hex(stat.czxid)}",
        f"ctime = {_date(stat.ctime_ms)}",
        f"mZxid = {_hex(stat.mzxid)}",
        f"mtime = {_date(stat.mtime_ms)}",
        f"pZxid = {_hex(stat.pzxid)}",
        f"cversion = {stat.children_version}",
        f"dataVersion = {stat.version}",
        f"aclVersion = {stat.acl_version}",
        f"ephemeralOwner = {_hex(stat.owner)}",
        f"dataLength = {stat.data_length}",
        f"numChildren = {stat.children_count}",
    ]


def _hex(number: int) -> str:
    return f"{number & (1 << 64) - 1:#x}"  # A session id may be negative.


def _date(time_ms: int) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(time_ms / 1000))
