"""What a metadata store is: a tree of small versioned nodes, changed by atomic steps.

The semantics are ZooKeeper's, so that a file on a lone broker's disk and a real ensemble are
interchangeable: every write is a `multi` that happens wholly or not at all, every node has a
version that grows by one per `Set`, an ephemeral node lives as long as the session that made it,
and a watch fires once. What the nodes mean belongs to the `cluster` package.
"""

from asyncio import Future
from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from penstock.errors import PenstockError

ANY_VERSION = -1  # In Set and Delete: whatever version the node has.
PERSISTENT = 0  # As an owner: no session owns the node, so none takes it away.


class Stat(NamedTuple):
    """What the store knows about a node besides its bytes."""

    version: int  # 0 at creation, plus one per Set.
    czxid: int  # The store's transaction that created the node: never the same twice.
    mzxid: int  # The transaction that last wrote it.
    owner: int  # The session an ephemeral node belongs to; PERSISTENT otherwise.


Node = tuple[bytes, Stat]


class Create(NamedTuple):
    """Make a node below an existing parent; a sequential one gets ten digits after its path."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class Set(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Changes nothing; the whole multi fails unless the node has this version."""

    path: str
    version: int


Op = Create | Set | Delete | Check
Result = str | Stat | None  # Create: the path made. Set: the new stat. Delete, Check: None.


class MetaError(PenstockError):
    """Something the store would not or could not do."""


class OpFailed(MetaError):
    """One operation cannot be done on the tree as it is."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{type(self).__name__}: {path}")
        self.path = path


class NoNode(OpFailed):
    """The node, or the parent of a node to create, is not there."""


class NodeExists(OpFailed):
    """There is such a node already."""


class BadVersion(OpFailed):
    """Somebody else wrote the node meanwhile."""


class NotEmpty(OpFailed):
    """A node with children cannot be deleted."""


class NoChildrenForEphemerals(OpFailed):
    """An ephemeral node cannot have children."""


class MultiFailed(MetaError):
    """A multi was refused and nothing of it happened; `reason` says why `op` could not be done."""

    def __init__(self, index: int, op: Op, reason: OpFailed) -> None:
        super().__init__(f"operation {index} ({type(op).__name__} {op.path}): {reason}")
        self.index = index
        self.op = op
        self.reason = reason


class OutcomeUnknown(MetaError):
    """A multi was sent and no answer came: it happened wholly or not at all. Read to find out."""


class StoreUnavailable(MetaError):
    """The store cannot serve now, and the operation was certainly not done: disk full, no link."""


class SessionLost(MetaError):
    """The session is over, and its ephemeral nodes with it; a new one must be opened."""


class SessionState(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"  # The link is gone; the session may still be alive in the store.
    LOST = "lost"


class WatchKind(Enum):
    DATA = "data"  # The node is created, written or deleted; it need not exist yet.
    CHILDREN = "children"  # A child comes or goes, or the node itself is deleted.


class Change(Enum):
    CREATED = "created"
    WRITTEN = "written"
    DELETED = "deleted"
    CHILDREN = "children"
    SESSION_LOST = "session lost"  # Not a change of the node: nothing more will be told.


class WatchEvent(NamedTuple):
    path: str
    change: Change


class MetaStore(Protocol):
    """One session with a store. Paths are absolute, as in `/brokers/ids/0`."""

    @property
    def session_id(self) -> int: ...

    @property
    def session_state(self) -> SessionState: ...

    @property
    def ops_per_multi_max(self) -> int:
        """How many operations a caller should put into one multi; larger work takes several."""
        ...

    async def get(self, path: str) -> Node:
        """The node; raises NoNode."""
        ...

    async def multi_get(self, paths: Sequence[str]) -> list[Node | None]:
        """All nodes as of one moment, in the order asked; None where there is none."""
        ...

    async def children(self, path: str) -> list[str]:
        """The names (not paths) of the children, sorted; raises NoNode."""
        ...

    async def multi(self, ops: Sequence[Op]) -> list[Result]:
        """Do all or nothing, each operation seeing those before it; raises MultiFailed."""
        ...

    async def watch_once(self, path: str, kind: WatchKind) -> Future[WatchEvent]:
        """Resolves at the first change after this call returned. Watch first, then read.

        The watch is heard before any read shows the change. Cancel the future to stop watching.
        A CHILDREN watch on a missing node raises NoNode.
        """
        ...

    def on_session(self, callback: Callable[[SessionState], None]) -> Callable[[], None]:
        """Call back at each change of the session's state; returns how to stop that."""
        ...

    async def close(self) -> None:
        """End the session: its ephemeral nodes go now, not at a timeout."""
        ...


def check_path(path: str) -> None:
    """Refuse what no store accepts; a caller with such a path has a bug."""
    if path == "/":
        return
    names = path.split("/")
    if names[0] or len(names) < 2 or "\0" in path or not {"", ".", ".."}.isdisjoint(names[1:]):
        raise ValueError(f"not a node path: {path!r}")


def parent_and_name(path: str) -> tuple[str, str]:
    """`/a/b/c` is c in /a/b, and `/a` is a in the root, which is written as the empty string."""
    parent, _, name = path.rpartition("/")
    return parent, name
