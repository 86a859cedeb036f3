"""ZooKeeper's tree node by node, for a person at a prompt: blocking, with everything in a stat.

The broker does not use this; it has a store (meta/zookeeper.py).
"""

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

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
    check_path,
)
from penstock.meta.zookeeper_address import ZkAddress, parse_address

CONNECT_S = 10.0

_log = logging.getLogger("penstock.meta.zookeeper.kazoo")
_log.setLevel(logging.ERROR)
_FAILURES: dict[type[Exception], type[OpFailed]] = {
    exceptions.NoNodeError: NoNode,
    exceptions.NodeExistsError: NodeExists,
    exceptions.BadVersionError: BadVersion,
    exceptions.NotEmptyError: NotEmpty,
    exceptions.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
}


class NodeStat(NamedTuple):
    """What ZooKeeper tells about a node, under the names its shell prints."""

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    children_version: int
    acl_version: int
    owner: int
    data_length: int
    children_count: int
    pzxid: int


class ZkNodes:
    """A session of its own; paths are below the chroot of the address."""

    def __init__(self, connect: str, *, connect_s: float = CONNECT_S) -> None:
        address = parse_address(connect)
        _refuse_silence(address, connect, connect_s)
        # kazoo warns of a missing chroot by a Python warning; our paths are full ones instead.
        self._full = address.full
        self._own = address.own
        self._client = KazooClient(hosts=address.hosts, timeout=connect_s, logger=_log)
        try:
            self._client.start(connect_s)
        except KazooTimeoutError:
            raise StoreUnavailable(
                f"No ZooKeeper at {connect} gave a session within {connect_s:g} s. "
                "Is it running, and is the address right?"
            ) from None

    def children(self, path: str) -> list[str]:
        return sorted(self._ask(path, self._client.get_children))

    def get(self, path: str) -> tuple[bytes | None, NodeStat]:
        data, stat = self._ask(path, self._client.get)
        return data, NodeStat(*stat)

    def create(
        self, path: str, data: bytes, *, is_ephemeral: bool = False, is_sequential: bool = False
    ) -> str:
        made = self._ask(
            path, self._client.create, data, ephemeral=is_ephemeral, sequence=is_sequential
        )
        return self._own(made)

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> NodeStat:
        return NodeStat(*self._ask(path, self._client.set, data, version))

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._ask(path, self._client.delete, version)

    def descend(self, path: str) -> Iterator[str]:
        """The node and all below it, parents before their children."""
        yield path
        for name in self.children(path):
            yield from self.descend(f"{path.rstrip('/')}/{name}")

    def close(self) -> None:
        self._client.stop()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, path: str, call: Callable[..., Any], *words: Any, **options: Any) -> Any:
        try:
            check_path(path)
        except ValueError as error:
            raise MetaError(
                f"{path} is not a path: it begins with / and does not end so"
            ) from error
        with _errors_as_ours(path):
            return call(self._full(path), *words, **options)


def _refuse_silence(address: ZkAddress, connect: str, connect_s: float) -> None:
    """Say at once that nobody listens; kazoo would go on trying."""
    reasons: list[str] = []
    for server in address.servers:
        try:
            socket.create_connection(server, connect_s).close()
            return
        except OSError as error:
            reasons.append(str(error))
    raise StoreUnavailable(
        f"No ZooKeeper at {connect} can be reached ({'; '.join(reasons)}). "
        "Is it running, and is the address right?"
    )


@contextmanager
def _errors_as_ours(path: str) -> Iterator[None]:
    try:
        yield
    except (exceptions.SessionExpiredError, exceptions.ConnectionClosedError) as error:
        raise SessionLost("the session with ZooKeeper is over") from error
    except exceptions.ConnectionLoss as error:
        raise StoreUnavailable("the connection to ZooKeeper was lost") from error
    except exceptions.KazooException as error:
        if type(error) in _FAILURES:
            raise _FAILURES[type(error)](path) from error
        raise MetaError(f"ZooKeeper refused {path}: {error!r}") from error
