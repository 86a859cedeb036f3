"""What a group gives a consumer and takes from it again.

The listener is told before librdkafka starts on new partitions, so that a seek or a pause it makes
is where reading begins, and before old ones are given up, so that it can still commit.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import confluent_kafka

from penstock.client import librdkafka
from penstock.client.consumer.positions import INVALID, Positions
from penstock.client.errors import NoOffsetForPartitionError
from penstock.client.values import TopicPartition

log = logging.getLogger("penstock.client")


class RebalanceListener(Protocol):
    """Told of gains and losses, on the thread that polls. `on_partitions_lost` may be missing."""

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition], /) -> None:
        """Partitions came; seeking and pausing is allowed now."""

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition], /) -> None:
        """Partitions are about to go; committing is still allowed."""


class Rebalance:
    """The answers to librdkafka's rebalance callbacks."""

    def __init__(
        self,
        positions: Positions,
        forget: Callable[[Iterable[TopicPartition]], None],
        *,
        cooperative: bool,
        who: str,
    ) -> None:
        self._positions = positions
        self._forget = forget
        self._cooperative = cooperative
        self._who = who
        self.listener: RebalanceListener | None = None
        self.is_subscribed = False
        self._by_steps = False  # librdkafka takes nothing but steps, once a group gave it some.
        self.has_declined = False  # librdkafka has been told of no partitions at all.
        self.starting: frozenset[TopicPartition] = frozenset()  # librdkafka has not begun on them.

    def on_assigned(
        self, rd: confluent_kafka.Consumer, given: list[confluent_kafka.TopicPartition]
    ) -> None:
        """Take partitions, each from where the listener or the group says."""
        if not self.is_subscribed:
            self._decline(rd)
            return
        came = librdkafka.our_partitions(given)
        log.info("[%s] Setting newly assigned partitions %s", self._who, _listed(came))
        self._positions.add(came)
        self.starting = frozenset(came)
        try:
            if self.listener is not None:
                self.listener.on_partitions_assigned(came)
            starts = with_starts(self._positions, came)
        finally:
            self.starting = frozenset()
        if self._cooperative:
            self._by_steps = True
            rd.incremental_assign(starts)
        else:
            rd.assign(starts)
        paused = [one for one in came if one in self._positions.paused]
        if paused:
            rd.pause(librdkafka.rd_partitions(paused))

    def on_revoked(
        self, rd: confluent_kafka.Consumer, given: list[confluent_kafka.TopicPartition]
    ) -> None:
        """Give partitions up."""
        self._give_up(rd, given, "on_partitions_revoked")

    def on_lost(
        self, rd: confluent_kafka.Consumer, given: list[confluent_kafka.TopicPartition]
    ) -> None:
        """Partitions that others have already; committing is too late."""
        named = hasattr(self.listener, "on_partitions_lost")
        self._give_up(rd, given, "on_partitions_lost" if named else "on_partitions_revoked")

    def _give_up(
        self,
        rd: confluent_kafka.Consumer,
        given: list[confluent_kafka.TopicPartition],
        method: str,
    ) -> None:
        if not self.is_subscribed:
            self._decline(rd)
            return
        gone = librdkafka.our_partitions(given)
        log.info("[%s] Revoking previously assigned partitions %s", self._who, _listed(gone))
        if self.listener is not None:
            getattr(self.listener, method)(gone)
        if self._cooperative:
            rd.incremental_unassign(given)
        else:
            rd.unassign()
        self._forget(gone)

    def put(
        self, rd: confluent_kafka.Consumer, starts: list[confluent_kafka.TopicPartition]
    ) -> None:
        """Let librdkafka read exactly these partitions."""
        if not self._by_steps:
            try:
                _put_whole(rd, starts)
                return
            except confluent_kafka.KafkaException as error:
                if error.args[0].code() != confluent_kafka.KafkaError._STATE:
                    raise
                self._by_steps = True  # A group's word came meanwhile.
        if before := rd.assignment():
            rd.incremental_unassign(before)
        rd.incremental_assign(starts)

    def _decline(self, rd: confluent_kafka.Consumer) -> None:
        """The word of a group that was left since: librdkafka waits for an answer to it."""
        if self._cooperative:
            self._by_steps = True
            rd.incremental_unassign(rd.assignment())
        else:
            rd.unassign()
        self.has_declined = True


def _put_whole(rd: confluent_kafka.Consumer, starts: list[confluent_kafka.TopicPartition]) -> None:
    if starts:
        rd.assign(starts)
    else:
        rd.unassign()


def with_starts(
    positions: Positions, partitions: Iterable[TopicPartition]
) -> list[confluent_kafka.TopicPartition]:
    """Partitions with the offsets to begin at, in librdkafka's form."""
    starts = []
    for one in partitions:
        offset = positions.start_of(one)
        if offset == INVALID:
            raise NoOffsetForPartitionError(f"Undefined offset for {one}: seek first.")
        starts.append(confluent_kafka.TopicPartition(one.topic, one.partition, offset))
    return starts


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return f"[{', '.join(str(one) for one in partitions)}]"
