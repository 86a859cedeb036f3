"""Judgement at the end: every replica read to its end, compared, and held against the history."""

from collections import defaultdict
from itertools import pairwise

from tests.simulation.cluster import World
from tests.simulation.history import History, Place, Write
from tests.simulation.oracle import Oracle

from penstock.records.batch import BatchHeader, read_header, read_records
from penstock.replica.partition import Partition
from penstock.storage.producers.producers import ProducerTable

Batches = list[tuple[BatchHeader, memoryview]]


def judge(world: World, oracle: Oracle) -> None:
    """Needs a cluster that has settled."""
    for place in oracle.places():
        replicas = {
            machine.name: hosted
            for machine in world.machines
            if machine.broker is not None
            and machine.broker_id in oracle.replicas(place)
            and (hosted := machine.broker.partitions.get(*place)) is not None
        }
        if len(replicas) != len(oracle.replicas(place)):
            world.history.violate(f"I32 {place} is hosted by {sorted(replicas)} only")
            continue
        judge_replicas(world.history, place, replicas)


def judge_replicas(history: History, place: Place, replicas: dict[str, Partition]) -> None:
    contents: dict[str, bytes] = {}
    start = max(partition.log.log_start_offset for partition in replicas.values())
    for name, partition in replicas.items():
        contents[name] = committed_bytes(partition, start=start)
        batches = split(contents[name])
        judge_epochs(history, place, name, partition, batches)
        judge_producers(history, place, name, partition)
    leader = next((n for n, p in replicas.items() if p.is_leader), None)
    if leader is None:
        history.violate(f"I32 nobody leads {place}")
        return
    for name, content in contents.items():
        size = min(len(content), len(contents[leader]))
        if content[:size] != contents[leader][:size]:
            history.violate(f"I2 {place}: {name} and {leader} differ below the high watermark")
    if not place[0].startswith("__"):  # What coordinators keep for themselves.
        judge_records(history, place, contents[leader])


def committed_bytes(partition: Partition, *, start: int = 0) -> bytes:
    return read_bytes(partition, partition.log.high_watermark, start=start)


def read_bytes(partition: Partition, end: int, *, start: int) -> bytes:
    log, found = partition.log, bytearray()
    offset = max(start, log.log_start_offset)
    while offset < end:
        records = log.read(offset, bytes_max=1 << 20, end_offset=end, min_one=True).records
        piece = bytes(records if isinstance(records, bytes) else records.read())
        if not piece:
            break
        found += piece
        offset = split(piece)[-1][0].next_offset
    return bytes(found)


def split(content: bytes) -> Batches:
    view, at, found = memoryview(content), 0, []
    while at < len(view):
        header = read_header(view, at)
        found.append((header, view[at : at + header.size_bytes]))
        at += header.size_bytes
    return found


def judge_epochs(
    history: History, place: Place, name: str, partition: Partition, batches: Batches
) -> None:
    """I17: the epoch history says of every batch what the batch says of itself."""
    for header, _ in batches:
        noted = partition.log.epoch_of(max(header.base_offset, partition.log.log_start_offset))
        if noted != header.leader_epoch:
            history.violate(
                f"I17 {place} on {name}: offset {header.base_offset} has epoch "
                f"{header.leader_epoch}, the epoch history says {noted}: {partition.log.epochs}"
            )
            return


def judge_producers(history: History, place: Place, name: str, partition: Partition) -> None:
    """I19: what the replica knows of producers is what its log tells."""
    table = ProducerTable()
    for header, batch in split(read_bytes(partition, partition.log.log_end_offset, start=0)):
        table.replay(header, batch)
    told = {e.producer_id: (e.producer_epoch, e.last_sequence) for e in table.entries.values()}
    kept = {e.producer_id: (e.producer_epoch, e.last_sequence) for e in partition.log.producers()}
    if place in history.trimmed:  # Of some only the memory is left.
        kept = {producer: kept[producer] for producer in kept if producer in told}
    if told != kept:
        history.violate(f"I19 {place} on {name}: the log tells {told}, the replica knows {kept}")


def judge_records(history: History, place: Place, content: bytes) -> None:
    values: dict[int, bytes] = {}
    for header, batch in split(content):
        if not header.is_control:
            for record in read_records(batch, bytes_max=1 << 20):
                values[record.offset] = bytes(record.value or b"")
    is_loose = place[0] in history.loose_topics
    if not is_loose:
        judge_acked(history, place, values)
        judge_seen(history, place, values)
    judge_order(history, place, values)


def judge_acked(history: History, place: Place, values: dict[int, bytes]) -> None:
    """I1 and I33: what was acknowledged is there, where it was said to be."""
    present = set(values.values())
    for write in history.acked():
        if write.place != place or write.acks != -1 or _may_be_trimmed(history, write):
            continue
        if write.value not in present:
            history.violate(f"I1 {place}: lost {write}")
        elif write.offset is not None and values.get(write.offset) != write.value:
            history.violate(f"I1 {place}: not where it was acknowledged: {write}")


def _may_be_trimmed(history: History, write: Write) -> bool:
    end = history.trimmed.get(write.place)
    return end is not None and (write.offset is None or write.offset < end)


def judge_seen(history: History, place: Place, values: dict[int, bytes]) -> None:
    for offset, value in history.seen[place].items():
        if values.get(offset, value) != value:
            history.violate(f"I10 {place} offset {offset}: read {value!r}, now {values[offset]!r}")
        elif offset < history.trimmed.get(place, 0):
            continue
        elif offset not in values and values and min(values) <= offset:
            history.violate(f"I1 {place} offset {offset}: {value!r} was read and is gone")


def judge_order(history: History, place: Place, values: dict[int, bytes]) -> None:
    """I20: each value of an idempotent producer at most once, and in the order it was sent."""
    numbers: dict[str, list[int]] = defaultdict(list)
    for _, value in sorted(values.items()):
        write = history.writes.get(value)
        if write is None:
            history.violate(f"{place} has {value!r}, which nobody wrote")
        elif write.is_idempotent:
            numbers[write.producer].append(write.number)
    for producer, found in numbers.items():
        if any(later <= earlier for earlier, later in pairwise(found)):
            history.violate(f"I20 {place}: {producer} is doubled or out of order: {found}")
