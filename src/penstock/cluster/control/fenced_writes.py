"""Writes that only the controller of one epoch can make.

Every multi begins with a check of the controller epoch's node, so a controller that was replaced
without noticing can change nothing any more. When the store could not say whether a write
happened, the nodes themselves are asked.
"""

from collections.abc import Sequence

from penstock.cluster import znodes
from penstock.errors import NotController
from penstock.meta.deadline import has_time_left
from penstock.meta.store import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    MetaStore,
    MultiFailed,
    Node,
    Op,
    OutcomeUnknown,
    Result,
    SessionLost,
    Set,
    StoreUnavailable,
)


class FencedWrites:
    """Writes to the store for one controller; `is_over` once another has been elected."""

    def __init__(self, store: MetaStore, epoch_version: int) -> None:
        self.store = store
        self.is_over = False
        self._check = Check(znodes.CONTROLLER_EPOCH, epoch_version)

    @property
    def ops_max(self) -> int:
        """How many operations one commit should hold."""
        return self.store.ops_per_multi_max - 1

    async def commit(self, ops: Sequence[Op]) -> list[Result]:
        """Do all of it as the controller; raises NotController, or MultiFailed as for `ops`.

        A write without an answer is made again until the deadline. The first one may still arrive
        after that: what it did is recognised as our own.
        """
        is_doubtful = False
        while True:
            try:
                return (await self.store.multi([self._check, *ops]))[1:]
            except MultiFailed as failure:
                if failure.index == 0:
                    raise self._end() from failure
                if is_doubtful and (found := await self._find_out(ops)) is not None:
                    return found
                raise MultiFailed(failure.index - 1, failure.op, failure.reason) from failure
            except SessionLost as lost:
                raise self._end() from lost
            except OutcomeUnknown as unknown:
                try:
                    found = await self._find_out(ops)
                except SessionLost:
                    self.is_over = True
                    # The end of the session does not show whether the write was done.
                    raise unknown from None
                if found is not None:
                    return found
                if not has_time_left():
                    raise StoreUnavailable(
                        f"a write was lost on its way to the store: {unknown}"
                    ) from unknown
                is_doubtful = True

    def _end(self) -> NotController:
        self.is_over = True
        return NotController("This is not the correct controller for this cluster.")

    async def _find_out(self, ops: Sequence[Op]) -> list[Result] | None:
        """Find the results of a write that was not answered; None: it did not happen."""
        asked = [op for op in ops if _leaves_a_trace(op)]
        paths = [znodes.CONTROLLER_EPOCH, *(op.path for op in asked)]
        epoch, *nodes = await self.store.multi_get(paths)
        if epoch is None or epoch[1].version != self._check.version:
            raise self._end()
        if not all(map(_is_done, asked, nodes)):
            return None
        found = {op.path: node for op, node in zip(asked, nodes, strict=True)}
        return [_result(op, found.get(op.path)) for op in ops]


def _leaves_a_trace(op: Op) -> bool:
    return not isinstance(op, Check) and not (isinstance(op, Create) and op.sequential)


def _is_done(op: Op, node: Node | None) -> bool:
    match op:
        case Create():
            return node is not None and node[0] == op.data
        case Set():
            expected = op.version + 1
            return (
                node is not None
                and node[0] == op.data
                and (op.version == ANY_VERSION or node[1].version == expected)
            )
        case Delete():
            return node is None
        case Check():
            return True


def _result(op: Op, node: Node | None) -> Result:
    match op:
        case Create():
            return op.path
        case Set():
            return node[1] if node else None
        case _:
            return None
