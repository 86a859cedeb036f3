"""ZooKeeper's tree node by node, for a person at a prompt: blocking, with everything in a stat.

The broker does not use this; it has a store (meta/zookeeper/store.py).
"""

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from kazoo import exceptions
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import WatchedEvent

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
from penstock.meta.zookeeper.address import ZkAddress, parse_address
from penstock.meta.zookeeper.grants import Grant, access_list
from penstock.meta.zookeeper.tls import TlsHandler
from penstock.security.tls.contexts import TlsSettings

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


Seen = Callable[[str, str], None]  # Called once, from another thread: what happened, to which node.


class ZkNodes:
    """A session of its own; paths are below the chroot of the address."""

    def __init__(
        self,
        connect: str,
        *,
        connect_s: float = CONNECT_S,
        session_s: float | None = None,
        tls: TlsSettings | None = None,
    ) -> None:
        """With a session of `session_s`, or as long as the connection may take."""
        address = parse_address(connect)
        _refuse_silence(address, connect, connect_s)
        # kazoo warns of a missing chroot by a Python warning; our paths are full ones instead.
        self._full = address.full
        self._own = address.own
        self._client = KazooClient(
            hosts=address.hosts,
            timeout=session_s or connect_s,
            handler=TlsHandler(tls.client_context() if tls else None),
            logger=_log,
        )
        try:
            self._client.start(connect_s)
        except KazooTimeoutError:
            raise StoreUnavailable(
                f"No ZooKeeper at {connect} gave a session within {connect_s:g} s. "
                "Is it running, is the address right, and does one of you speak TLS?"
            ) from None

    def children(self, path: str, on_change: Seen | None = None) -> list[str]:
        return sorted(self._ask(path, self._client.get_children, watch=self._watcher(on_change)))

    def get(self, path: str, on_change: Seen | None = None) -> tuple[bytes | None, NodeStat]:
        data, stat = self._ask(path, self._client.get, watch=self._watcher(on_change))
        return data, NodeStat(*stat)

    def watch_for(self, path: str, on_change: Seen) -> NodeStat | None:
        """Whether there is such a node; told of its making, too."""
        stat = self._ask(path, self._client.exists, watch=self._watcher(on_change))
        return stat and NodeStat(*stat)

    def create(
        self,
        path: str,
        data: bytes,
        *,
        is_ephemeral: bool = False,
        is_sequential: bool = False,
        grants: Sequence[Grant] = (),
    ) -> str:
        """Without grants everybody may do everything."""
        made = self._ask(
            path,
            self._client.create,
            data,
            acl=access_list(grants) or None,
            ephemeral=is_ephemeral,
            sequence=is_sequential,
        )
        return self._own(made)

    def grants(self, path: str) -> tuple[list[Grant], NodeStat]:
        entries, stat = self._ask(path, self._client.get_acls)
        return [Grant(one.id.scheme, one.id.id, one.perms) for one in entries], NodeStat(*stat)

    def set_grants(
        self, path: str, grants: Sequence[Grant], version: int = ANY_VERSION
    ) -> NodeStat:
        return NodeStat(*self._ask(path, self._client.set_acls, access_list(grants), version))

    def identify(self, scheme: str, credential: str) -> None:
        """Show ZooKeeper who this is, for what is granted to some alone."""
        try:
            self._client.add_auth(scheme, credential)
        except exceptions.AuthFailedError as error:
            raise MetaError(f"ZooKeeper refused the {scheme} identity.") from error

    def sync(self, path: str) -> None:
        """What anybody wrote before is seen by reads after."""
        self._ask(path, self._client.sync)

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

    def _watcher(self, on_change: Seen | None) -> Callable[[WatchedEvent], None] | None:
        if on_change is None:
            return None
        return lambda event: on_change(event.type, self._own(event.path) if event.path else "")

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
    except exceptions.NoAuthError as error:
        raise MetaError(f"Insufficient permission : {path}") from error
    except exceptions.InvalidACLError as error:
        raise MetaError(f"Acl is not valid : {path}") from error
    except exceptions.KazooException as error:
        if type(error) in _FAILURES:
            raise _FAILURES[type(error)](path) from error
        raise MetaError(f"ZooKeeper refused {path}: {error!r}") from error
