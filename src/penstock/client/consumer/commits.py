"""Committing offsets for a group: waiting, not waiting, and hearing of what the timer did."""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias

import confluent_kafka

from penstock.client import librdkafka
from penstock.client.errors import CommitFailedError
from penstock.client.interceptors import Chain, ConsumerInterceptor
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.errors import IllegalGeneration, PenstockError, UnknownMemberId

log = logging.getLogger("penstock.client")

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback: TypeAlias = Callable[[Offsets, Exception | None], None]

_NOTHING_TO_COMMIT = confluent_kafka.KafkaError._NO_OFFSET
_TOO_LATE = (int(IllegalGeneration.code), int(UnknownMemberId.code))


class Commits:
    """The commits of one consumer."""

    def __init__(self, interceptors: Chain[ConsumerInterceptor], who: str) -> None:
        self._interceptors = interceptors
        self._who = who
        self._awaited: deque[tuple[Offsets, CommitCallback | None]] = deque()

    def wait(self, rd: confluent_kafka.Consumer, offsets: Offsets) -> None:
        """Commit, and return once the coordinator has said yes."""
        done = self._send(rd, offsets, asynchronous=False)
        failed = next((one.error for one in done if one.error is not None), None)
        if failed is not None:
            raise commit_error(failed)

    def start(
        self, rd: confluent_kafka.Consumer, offsets: Offsets, callback: CommitCallback | None
    ) -> None:
        """Commit, and have the callback called in a later poll."""
        self._awaited.append((offsets, callback))
        self._send(rd, offsets, asynchronous=True)

    def on_commit_finished(
        self,
        error: confluent_kafka.KafkaError | None,
        partitions: list[confluent_kafka.TopicPartition],
    ) -> None:
        """librdkafka has finished a commit, one of ours or the timer's."""
        offsets = {
            TopicPartition(one.topic, one.partition): known
            for one in partitions
            if (known := librdkafka.our_offset(one)) is not None
        }
        failed = error or next((one.error for one in partitions if one.error), None)
        failure = None if failed is None else commit_error(failed)
        if failure is None and self._interceptors:
            self._interceptors.tell("on_commit", offsets)
        if not self._tell_waiting(offsets, failure) and failure is not None:
            log.warning("[%s] Auto-commit of offsets failed: %s", self._who, failure)

    def _tell_waiting(self, offsets: Offsets, failure: PenstockError | None) -> bool:
        """Whether the commit was one that `start` began: the first with the same offsets."""
        plain = {at: one.offset for at, one in offsets.items()}
        for waiting in self._awaited:
            wanted, callback = waiting
            if {at: one.offset for at, one in wanted.items()} == plain:
                self._awaited.remove(waiting)
                if callback is not None:
                    callback(wanted, failure)
                return True
        return False

    @staticmethod
    def _send(
        rd: confluent_kafka.Consumer, offsets: Offsets, *, asynchronous: bool
    ) -> list[confluent_kafka.TopicPartition]:
        wanted = librdkafka.rd_offsets(offsets)
        try:
            if asynchronous:
                rd.commit(offsets=wanted, asynchronous=True)
                return []
            return rd.commit(offsets=wanted, asynchronous=False) or []
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() == _NOTHING_TO_COMMIT:
                return []
            raise commit_error(error.args[0]) from error


def commit_error(error: confluent_kafka.KafkaError) -> PenstockError:
    """A commit after the group has moved on is a failed commit, whatever the code."""
    if error.code() in _TOO_LATE:
        return CommitFailedError(
            "The group has given the partitions to other members: the time between polls was "
            "longer than max.poll.interval.ms."
        )
    return librdkafka.translated_error(error)
