"""The log at the end of a run, read to the last record by both kinds of reader.

Before that, transactions that clients left open are ended by taking over their ids, as a restarted
application would; a transaction that still holds readers back afterwards is a finding.
"""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tests.faults.clients.confluent import COMMON
from tests.faults.clients.family import Place, name, number
from tests.faults.clients.recorder import Recorder
from tests.faults.deployment import NotHealed

SETTLE_S = 180.0
Settings = Mapping[str, str]  # Which cluster, and how to come in.
Found = dict[Place, list[tuple[int, int]]]


def end_open_transactions(cluster: Settings, transactional_ids: Sequence[str]) -> None:
    """Take over each id, which aborts what its last owner left open."""
    for transactional_id in transactional_ids:
        settings = {**COMMON, **cluster, "transactional.id": transactional_id}
        try:
            Producer(settings).init_transactions(60)
        except KafkaException as error:
            raise NotHealed(f"nobody can take over {transactional_id}: {error}") from error


def record_logs(cluster: Settings, places: Sequence[Place], recorder: Recorder) -> dict[str, int]:
    """Write down the whole log of each partition as both readers see it; the ends."""
    plain, committed = _reader(cluster, "read_uncommitted"), _reader(cluster, "read_committed")
    try:
        ends = _ends(plain, places)
        stable = _settled(committed, places, ends)
        for reader, is_committed_only in ((plain, False), (committed, True)):
            found = _read_all(reader, stable if is_committed_only else ends)
            for place, records in found.items():
                recorder.look(
                    "log",
                    time.monotonic_ns(),
                    partition=name(place),
                    records=[(name(place), offset, value) for offset, value in records],
                    end_offset=ends[place],
                    is_committed_only=is_committed_only,
                    is_settled=stable[place] == ends[place],
                )
    finally:
        plain.close()
        committed.close()
    return {name(place): end for place, end in ends.items()}


def _reader(cluster: Settings, isolation: str) -> Consumer:
    return Consumer(
        {
            **COMMON,
            **cluster,
            "group.id": "the-last-reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )


def _ends(reader: Consumer, places: Sequence[Place]) -> dict[Place, int]:
    try:
        return {
            place: reader.get_watermark_offsets(TopicPartition(*place), 120)[1] for place in places
        }
    except KafkaException as error:
        raise NotHealed(f"the end of a partition cannot be had: {error}") from error


def _settled(reader: Consumer, places: Sequence[Place], ends: dict[Place, int]) -> dict[Place, int]:
    """The ends for a reader of committed records, once they are the ends for all, or for good."""
    give_up_s = time.monotonic() + SETTLE_S
    while True:
        stable = _ends(reader, places)
        if stable == ends or time.monotonic() > give_up_s:
            return stable
        time.sleep(0.1)  # Markers are on their way.


def _read_all(reader: Consumer, ends: dict[Place, int]) -> Found:
    reader.assign([TopicPartition(t, p, 0) for t, p in ends])
    found: Found = {place: [] for place in ends}
    open_places = {place for place, end in ends.items() if end > 0}
    give_up_s = time.monotonic() + 180
    while open_places:
        if time.monotonic() > give_up_s:
            raise NotHealed(f"{open_places} cannot be read to the end")
        for message in reader.consume(1000, 0.2):
            place = (message.topic(), message.partition())
            error = message.error()
            if error is None:
                found[place].append((message.offset(), number(message.value())))
            elif error.code() == KafkaError._PARTITION_EOF and message.offset() >= ends[place]:
                open_places.discard(place)
    return found
