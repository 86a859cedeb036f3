"""The commands of zookeeper-shell, each from its words to the lines it prints.

The prompt and what is done about a refusal are zookeeper_shell.py.
"""

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from penstock.errors import CommandError
from penstock.meta.store import ANY_VERSION, NoNode
from penstock.meta.zookeeper.grants import RIGHTS, Grant
from penstock.meta.zookeeper.nodes import NodeStat, Seen, ZkNodes

_SHOWN_RIGHTS = "cdrwa"  # In the order ZooKeeper's shell prints them.


class Given(NamedTuple):
    """A command's words, sorted: flags without their dash, the version, the rest."""

    flags: frozenset[str]
    version: int
    words: tuple[str, ...]


class Command(NamedTuple):
    usage: str
    words_min: int
    words_max: int
    run: Callable[[ZkNodes, Given], list[str]]

    def sort(self, words: list[str]) -> Given:
        """Raises what this command wants to be told, where the words are not that."""
        flags: set[str] = set()
        version = ANY_VERSION
        rest: list[str] = []
        waiting = iter(words)
        for word in waiting:
            if rest or not word.startswith("-") or word == "-":
                rest.append(word)
            elif f"[{word} version]" in self.usage:
                number = next(waiting, "")
                if not number.lstrip("-").isdigit():
                    raise CommandError(self.usage)
                version = int(number)
            elif f"[{word}]" in self.usage:
                flags.add(word[1:])
            else:
                raise CommandError(f"Unrecognized option: {word}\n{self.usage}")
        if not self.words_min <= len(rest) <= self.words_max:
            raise CommandError(self.usage)
        return Given(frozenset(flags), version, tuple(rest))


def _ls(nodes: ZkNodes, given: Given) -> list[str]:
    (path,) = given.words
    if "R" in given.flags:
        return list(nodes.descend(path))
    lines = [f"[{', '.join(nodes.children(path, _watcher(given)))}]"]
    return lines + (stat_lines(nodes.get(path)[1]) if "s" in given.flags else [])


def _ls_with_stat(nodes: ZkNodes, given: Given) -> list[str]:
    return _ls(nodes, given._replace(flags=frozenset("s")))


def _get(nodes: ZkNodes, given: Given) -> list[str]:
    data, stat = nodes.get(given.words[0], _watcher(given))
    text = "null" if data is None else data.decode(errors="replace")
    return [text, *(stat_lines(stat) if "s" in given.flags else [])]


def _stat(nodes: ZkNodes, given: Given) -> list[str]:
    (path,) = given.words
    watcher = _watcher(given)
    stat = nodes.watch_for(path, watcher) if watcher else nodes.get(path)[1]
    if stat is None:
        raise NoNode(path)
    return stat_lines(stat)


def _watcher(given: Given) -> Seen | None:
    return _tell_of_change if "w" in given.flags else None


def _tell_of_change(kind: str, path: str) -> None:
    names = {
        "CREATED": "NodeCreated",
        "DELETED": "NodeDeleted",
        "CHANGED": "NodeDataChanged",
        "CHILD": "NodeChildrenChanged",
    }
    if kind in names:  # Else it is about the connection.
        show_event(names[kind], path)


def show_event(kind: str, path: str) -> None:
    """As ZooKeeper's shell shows what a watch saw, in one piece: it comes while others print."""
    text = f"\nWATCHER::\n\nWatchedEvent state:SyncConnected type:{kind} path:{path}\n"
    sys.stdout.write(text)
    sys.stdout.flush()


def _create(nodes: ZkNodes, given: Given) -> list[str]:
    path, data, access = (*given.words, "", "")[:3]
    made = nodes.create(
        path,
        data.encode(),
        is_ephemeral="e" in given.flags,
        is_sequential="s" in given.flags,
        grants=parsed_grants(access) if access else (),
    )
    return [f"Created {made}"]


def _set(nodes: ZkNodes, given: Given) -> list[str]:
    path, data = given.words
    stat = nodes.set(path, data.encode(), given.version)
    return stat_lines(stat) if "s" in given.flags else []


def _delete(nodes: ZkNodes, given: Given) -> list[str]:
    nodes.delete(given.words[0], given.version)
    return []


def _delete_all(nodes: ZkNodes, given: Given) -> list[str]:
    for path in reversed(list(nodes.descend(given.words[0]))):
        nodes.delete(path)
    return []


def _count(nodes: ZkNodes, given: Given) -> list[str]:
    return [str(sum(1 for _ in nodes.descend(given.words[0])) - 1)]


def _get_access(nodes: ZkNodes, given: Given) -> list[str]:
    grants, stat = nodes.grants(given.words[0])
    lines = [
        line
        for one in grants
        for line in (f"'{one.scheme},'{one.identity}", f": {_letters(one.permissions)}")
    ]
    return lines + (stat_lines(stat) if "s" in given.flags else [])


def _set_access(nodes: ZkNodes, given: Given) -> list[str]:
    path, access = given.words
    stat = nodes.set_grants(path, parsed_grants(access), given.version)
    return stat_lines(stat) if "s" in given.flags else []


def _identify(nodes: ZkNodes, given: Given) -> list[str]:
    scheme, credential = (*given.words, "")[:2]
    nodes.identify(scheme, credential)
    return []


def _sync(nodes: ZkNodes, given: Given) -> list[str]:
    nodes.sync(given.words[0])
    return ["Sync is OK"]


def parsed_grants(text: str) -> list[Grant]:
    """`world:anyone:cdrwa,digest:user:hash:r`: the identity may have colons of its own."""
    grants = []
    for entry in text.split(","):
        scheme, _, rest = entry.partition(":")
        identity, _, letters = rest.rpartition(":")
        if not scheme or not letters or set(letters) - set(RIGHTS) or ":" not in rest:
            raise CommandError(
                f"{entry} does not have the form scheme:id:perm, where perm is of the letters "
                f"{_SHOWN_RIGHTS}"
            )
        bits = sum(1 << RIGHTS.index(letter) for letter in set(letters))
        grants.append(Grant(scheme, identity, bits))
    return grants


def _letters(permissions: int) -> str:
    return "".join(one for one in _SHOWN_RIGHTS if permissions >> RIGHTS.index(one) & 1)


COMMANDS = {
    "ls": Command("ls [-s] [-w] [-R] path", 1, 1, _ls),
    "ls2": Command("ls2 path", 1, 1, _ls_with_stat),
    "get": Command("get [-s] [-w] path", 1, 1, _get),
    "stat": Command("stat [-w] path", 1, 1, _stat),
    "create": Command("create [-s] [-e] path [data] [acl]", 1, 3, _create),
    "set": Command("set [-s] [-v version] path data", 2, 2, _set),
    "delete": Command("delete [-v version] path", 1, 1, _delete),
    "deleteall": Command("deleteall path", 1, 1, _delete_all),
    "rmr": Command("rmr path", 1, 1, _delete_all),
    "getAllChildrenNumber": Command("getAllChildrenNumber path", 1, 1, _count),
    "getAcl": Command("getAcl [-s] path", 1, 1, _get_access),
    "setAcl": Command("setAcl [-s] [-v version] path acl", 2, 2, _set_access),
    "addauth": Command("addauth scheme auth", 1, 2, _identify),
    "sync": Command("sync path", 1, 1, _sync),
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
