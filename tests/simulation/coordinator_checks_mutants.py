"""Coordinators and readers with one guard removed; see `mutants.py`."""

from collections.abc import Callable, Iterable
from typing import Any

from penstock.broker.handlers import fetch
from penstock.groups.coordinator import GroupCoordinator
from penstock.groups.offsets.table import GroupOffsets
from penstock.replica.state_log import StateLog
from penstock.storage.producers import producers
from penstock.transactions import coordinator, rules
from penstock.transactions.guards import Guards
from penstock.transactions.markers import MarkerSink, TransactionMarker
from penstock.transactions.shard import TransactionShard
from penstock.transactions.transaction import ProducerIdentity, TopicPartition, Transaction


def _without_the_last_marker() -> None:
    real = coordinator.mark_everywhere

    async def mark(
        marker: TransactionMarker, partitions: Iterable[TopicPartition], sink: MarkerSink
    ) -> bool:
        wanted = sorted(partitions)
        return await real(marker, wanted[:-1] if len(wanted) > 1 else wanted, sink)

    coordinator.mark_everywhere = mark


def _answering_from_memory() -> None:
    """A coordinator that is not one any more goes on with what it knew."""
    GroupCoordinator._resign = lambda self, _: None  # type: ignore[method-assign]
    StateLog.is_led = True  # type: ignore[method-assign,assignment]


def _without_the_aborted() -> None:
    fetch._aborted = lambda _: []


def _counting_offsets_at_once() -> None:
    def put_pending(self: GroupOffsets, _producer_id: int, *what: Any) -> None:
        self.put(*what)

    GroupOffsets.put_pending = put_pending  # type: ignore[method-assign]


def _without_epochs() -> None:
    def owned_by(known: Transaction | None, _: ProducerIdentity) -> Transaction:
        assert known is not None
        return known

    def end(known: Transaction | None, _: ProducerIdentity, **how: Any) -> rules.Step | None:
        assert known is not None
        return real_end(known, known.identity, **how)

    real_end = rules.end
    rules._owned_by = owned_by
    rules.end = end
    producers._check_epoch = lambda *_: None


def _answering_before_it_is_safe() -> None:
    async def until_settled(self: StateLog) -> None:
        """Whatever was written is believed at once."""

    StateLog.until_settled = until_settled  # type: ignore[method-assign]
    StateLog.is_settled = True  # type: ignore[method-assign,assignment]


def believing_another_leaders_high_watermark() -> None:
    """Whoever asks late takes what was written in its place for its own."""

    def is_settled(self: StateLog) -> bool:
        return self.partition.log.high_watermark >= self._end_offset

    def settled(self: StateLog) -> Any:
        if is_settled(self):
            return None
        return self.partition._waits.add(self._end_offset)

    StateLog.is_settled = property(is_settled)  # type: ignore[method-assign,assignment]
    StateLog.settled = settled  # type: ignore[method-assign]


def _ending_the_next_transaction() -> None:
    """A marker takes down the guards of its own epoch, which in version 2 the next one has."""
    TransactionMarker.last_epoch_ended = property(  # type: ignore[method-assign,assignment]
        lambda self: self.producer_epoch
    )


def leaving_guards_up() -> None:
    """A batch that was let in before its transaction ended is written behind the marker."""
    Guards.end = lambda self, key, last_epoch: None  # type: ignore[method-assign]


def refusing_from_memory() -> None:
    """A coordinator that was deposed unnoticed refuses clients by what it knew."""
    TransactionShard.restate = lambda self, transactional_id: None  # type: ignore[method-assign]


COORDINATOR_MUTANTS: dict[str, Callable[[], None]] = {
    "a marker for every partition": _without_the_last_marker,
    "only coordinators answer": _answering_from_memory,
    "readers know of aborts": _without_the_aborted,
    "offsets wait for their transaction": _counting_offsets_at_once,
    "producer epochs": _without_epochs,
    "coordinators answer for what is safe": _answering_before_it_is_safe,
    "a marker leaves the next transaction alone": _ending_the_next_transaction,
}
