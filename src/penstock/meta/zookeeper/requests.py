"""The requests we send to ZooKeeper over kazoo's connection, and their answers as our values.

kazoo frames them, numbers them and pairs the answers; an object here says how one looks on the
wire. MultiRead is ZooKeeper's own (since 3.6) but unknown to kazoo: many nodes as of one moment in
one round trip, which is what makes a new controller fast.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kazoo import exceptions
from kazoo.protocol import serialization as wire

from penstock.meta.access import Access
from penstock.meta.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    MetaError,
    MultiFailed,
    NoChildrenForEphemerals,
    Node,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    OpFailed,
    Result,
    Set,
    Stat,
)
from penstock.meta.zookeeper.address import ZkAddress
from penstock.meta.zookeeper.grants import GRANTS, access_list

_EPHEMERAL, _SEQUENTIAL = 1, 2
_END: bytes = wire.multiheader_struct.pack(-1, True, -1)
_FAILURES: dict[type[Exception], type[OpFailed]] = {
    exceptions.NoNodeError: NoNode,
    exceptions.NodeExistsError: NodeExists,
    exceptions.BadVersionError: BadVersion,
    exceptions.NotEmptyError: NotEmpty,
    exceptions.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
}
# What ZooKeeper says of the other operations of a multi that failed.
_NOT_THE_CAUSE = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)


Answer = TypeVar("Answer")
AccessOf = Callable[[str], Access]  # By the path of a node to be made.
_LISTS = {access: access_list(grants) for access, grants in GRANTS.items()}


def all_open(_path: str) -> Access:
    """Without access control everybody may do everything."""
    return Access.OPEN


class Multi:
    """Writes that happen together; it knows whether it may have left this machine."""

    type = 14

    def __init__(
        self, ops: Sequence[Op], address: ZkAddress, access_of: AccessOf = all_open
    ) -> None:
        self._ops = ops
        self._access_of = access_of
        self._address = address
        self.sent_bytes: int | None = None  # None: it was certainly not sent.

    def serialize(self) -> bytes:
        """Called by kazoo's thread right before it writes to the socket."""
        parts = bytearray()
        for op in self._ops:
            item = _on_the_wire(op, self._address.full(op.path), self._access_of)
            parts += wire.multiheader_struct.pack(item.type, False, -1) + item.serialize()
        self.sent_bytes = len(parts)
        return bytes(parts + _END)

    def deserialize(self, data: bytes, offset: int) -> list[Result | Exception]:
        return _read_answers(data, offset, self._read)

    def _read(self, code: int, data: bytes, offset: int) -> tuple[Result | Exception, int]:
        if code == wire.Create.type:
            path, end = wire.read_string(data, offset)
            return self._address.own(path), end
        if code == wire.SetData.type:
            return read_stat(data, offset), offset + wire.stat_struct.size
        return None, offset  # A deletion or a check, which have nothing to tell.

    def checked(self, results: Sequence[Result | Exception]) -> list[Result]:
        """The results of a multi that was done; otherwise MultiFailed names the operation."""
        done: list[Result] = []
        for index, result in enumerate(results):
            if isinstance(result, _NOT_THE_CAUSE):
                continue
            if isinstance(result, Exception):
                raise self._failed(index, result) from result
            done.append(result)
        if len(done) != len(self._ops):
            raise MetaError(f"ZooKeeper answered {results!r} to {len(self._ops)} operations")
        return done

    def _failed(self, index: int, error: Exception) -> MetaError:
        op = self._ops[index]
        reason = _FAILURES.get(type(error))
        if isinstance(error, exceptions.NoAuthError):
            return no_right(op.path)
        if reason is None:
            return MetaError(f"ZooKeeper refused {type(op).__name__} {op.path}: {error!r}")
        return MultiFailed(index, op, reason(op.path))


class MultiRead:
    """Many nodes as of one moment; None where there is none."""

    type = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def serialize(self) -> bytes:
        header = wire.multiheader_struct.pack(wire.GetData.type, False, -1)
        items = [bytes(header + wire.GetData(path, None).serialize()) for path in self._paths]
        return b"".join([*items, _END])

    def deserialize(self, data: bytes, offset: int) -> list[Node | Exception]:
        return _read_answers(data, offset, self._read)

    @staticmethod
    def _read(_: int, data: bytes, offset: int) -> tuple[Node, int]:
        content, offset = wire.read_buffer(data, offset)
        return (content or b"", read_stat(data, offset)), offset + wire.stat_struct.size


def nodes_found(answers: Sequence[Node | Exception]) -> list[Node | None]:
    """What a MultiRead answered; a node that may not be read is an error, not an absence."""
    for answer in answers:
        if isinstance(answer, exceptions.NoAuthError):
            raise no_right("a node") from answer
        if isinstance(answer, Exception) and not isinstance(answer, exceptions.NoNodeError):
            raise MetaError(f"ZooKeeper refused to show a node: {answer!r}") from answer
    return [None if isinstance(answer, Exception) else answer for answer in answers]


def no_right(path: str) -> MetaError:
    """For what only somebody else may do, who made the node."""
    return MetaError(
        f"ZooKeeper has {path} kept from us by its access list: brokers need certificates with one "
        "name for all, and the nodes are given to it by zookeeper-security-migration"
    )


def read_stat(data: bytes, offset: int) -> Stat:
    czxid, mzxid, _, _, version, _, _, owner, *_ = wire.stat_struct.unpack_from(data, offset)
    return Stat(version, czxid, mzxid, owner)


def _read_answers(
    data: bytes, offset: int, read: Callable[[int, bytes, int], tuple[Answer, int]]
) -> list[Answer | Exception]:
    """The answers of a multi: each behind a header with its kind, the last header is the end."""
    answers: list[Answer | Exception] = []
    while True:
        code, is_end, _ = wire.multiheader_struct.unpack_from(data, offset)
        offset += wire.multiheader_struct.size
        if is_end:
            return answers
        if code == -1:
            (number,) = wire.int_struct.unpack_from(data, offset)
            offset += wire.int_struct.size
            answers.append(exceptions.EXCEPTIONS[number]())
            continue
        answer, offset = read(code, data, offset)
        answers.append(answer)


def _on_the_wire(op: Op, path: str, access_of: AccessOf) -> Any:
    match op:
        case Create():
            flags = _EPHEMERAL * op.ephemeral | _SEQUENTIAL * op.sequential
            return wire.Create(path, op.data, _LISTS[access_of(op.path)], flags)
        case Set():
            return wire.SetData(path, op.data, op.version)
        case Delete():
            return wire.Delete(path, op.version)
        case Check():
            return wire.CheckVersion(path, op.version)
