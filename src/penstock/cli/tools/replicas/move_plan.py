"""What is to move where: the JSON files of kafka-reassign-partitions and the throttles of a plan.

All of it is values in, values out; the tool itself asks the cluster and prints.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.client.operations.reassignments import PartitionReassignment, Replica
from penstock.client.values import TopicPartition
from penstock.cluster.topics.placement import place
from penstock.errors import CommandError

Assignment = Mapping[TopicPartition, Sequence[int]]
ANY_DIRECTORY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a reassignment file asks for."""

    replicas: dict[TopicPartition, tuple[int, ...]]
    directories: dict[Replica, str]  # Only where the file names one.


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMove:
    """The brokers that one partition is copied from and to."""

    sources: frozenset[int]
    destinations: frozenset[int]


def parse_reassignment(text: str) -> Wanted:
    """The file of --reassignment-json-file; each partition once, each broker once in it."""
    document = _document(text)
    replicas: list[tuple[TopicPartition, tuple[int, ...]]] = []
    directories: dict[Replica, str] = {}
    for entry in _entries(document, "partitions"):
        at = TopicPartition(str(_value(entry, "topic")), _number(_value(entry, "partition")))
        brokers = tuple(_number(word) for word in _list(_value(entry, "replicas")))
        replicas.append((at, brokers))
        paths = entry.get("log_dirs")
        if paths is None:
            continue
        if len(_list(paths)) != len(brokers):
            raise CommandError(
                f"Size of replicas list {list(brokers)} is different from size of log dirs list "
                f"{paths} for partition {at}"
            )
        for broker, path in zip(brokers, paths, strict=True):
            if path != ANY_DIRECTORY:
                directories[Replica(at.topic, at.partition, broker)] = str(path)
    _refuse_contradictions(replicas)
    return Wanted(replicas=dict(replicas), directories=directories)


def parse_topics(text: str) -> list[str]:
    """The file of --topics-to-move-json-file."""
    topics = [str(_value(entry, "topic")) for entry in _entries(_document(text), "topics")]
    if twice := _twice(topics):
        raise CommandError(
            f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]"
        )
    return topics


def parse_brokers(text: str) -> list[int]:
    """The brokers of --broker-list."""
    try:
        brokers = [int(word) for word in text.split(",") if word.strip()]
    except ValueError:
        raise CommandError(f"--broker-list {text}: write broker ids as 0,1,2") from None
    if twice := _twice(brokers):
        listed = ", ".join(str(broker) for broker in twice)
        raise CommandError(f"Broker list contains duplicate entries: [{listed}]")
    return brokers


def as_json(assignment: Assignment, paths: Mapping[Replica, str] | None = None) -> str:
    """A file for --reassignment-json-file, in Kafka's order of keys."""
    known = paths or {}
    partitions = [
        {
            "topic": at.topic,
            "partition": at.partition,
            "replicas": list(assignment[at]),
            "log_dirs": [known.get(Replica(*at, b), ANY_DIRECTORY) for b in assignment[at]],
        }
        for at in sorted(assignment)
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def propose(
    current: Assignment,
    racks: Mapping[int, str | None],
    *,
    start: int,
    shift: int,
) -> dict[TopicPartition, tuple[int, ...]]:
    """The partitions of each topic anew over the brokers, with as many replicas as before."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for at in sorted(current):
        by_topic.setdefault(at.topic, []).append(at)
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for partitions in by_topic.values():
        placed = place(
            racks,
            partition_count=len(partitions),
            replication_factor=len(current[partitions[0]]),
            start=start,
            shift=shift,
        )
        proposed.update(zip(partitions, placed.values(), strict=True))
    return proposed


def racks_for(
    known: Mapping[int, str | None], wanted: Sequence[int], *, aware: bool
) -> dict[int, str | None]:
    """The racks of the wanted brokers; none counts unless all have one."""
    for broker in wanted:
        if broker not in known:
            raise CommandError(f"Unknown broker id {broker}")
    racks = {broker: known[broker] if aware else None for broker in wanted}
    if len({rack is None for rack in racks.values()}) > 1:
        raise CommandError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to "
            "make replica assignment without rack information."
        )
    return racks


def moves(
    proposed: Assignment,
    current: Assignment,
    under_way: Mapping[TopicPartition, PartitionReassignment],
) -> dict[TopicPartition, PlannedMove]:
    """Where bytes will flow; a partition on the move keeps the sources it has."""
    found = {
        at: PlannedMove(
            sources=frozenset(move.replicas) - frozenset(move.adding),
            destinations=frozenset(move.adding),
        )
        for at, move in under_way.items()
    }
    for at, replicas in proposed.items():
        sources = found[at].sources if at in found else frozenset(current[at])
        found[at] = PlannedMove(sources=sources, destinations=frozenset(replicas) - sources)
    return found


def throttled_leaders(planned: Mapping[TopicPartition, PlannedMove]) -> dict[str, str]:
    """leader.replication.throttled.replicas by topic: every source of every partition."""
    return _throttled({at: move.sources for at, move in planned.items()})


def throttled_followers(planned: Mapping[TopicPartition, PlannedMove]) -> dict[str, str]:
    """follower.replication.throttled.replicas by topic: the replicas that come."""
    return _throttled({at: move.destinations for at, move in planned.items()})


def brokers_of(planned: Mapping[TopicPartition, PlannedMove]) -> list[int]:
    """Every broker that sends or receives."""
    return sorted({b for move in planned.values() for b in move.sources | move.destinations})


def _throttled(brokers: Mapping[TopicPartition, Iterable[int]]) -> dict[str, str]:
    words: dict[str, list[str]] = {}
    for at in sorted(brokers):
        its = [f"{at.partition}:{broker}" for broker in sorted(brokers[at])]
        if its:
            words.setdefault(at.topic, []).extend(its)
    return {topic: ",".join(its) for topic, its in words.items()}


def _refuse_contradictions(
    replicas: Sequence[tuple[TopicPartition, tuple[int, ...]]],
) -> None:
    if not replicas:
        raise CommandError("Partition reassignment list cannot be empty")
    if any(not brokers for _, brokers in replicas):
        raise CommandError("Partition replica list cannot be empty")
    if twice := _twice(at for at, _ in replicas):
        listed = ",".join(str(at) for at in twice)
        raise CommandError(f"Partition reassignment contains duplicate topic partitions: {listed}")
    doubled = [(at, _twice(brokers)) for at, brokers in replicas if _twice(brokers)]
    if doubled:
        listed = ". ".join(
            f"{at} contains multiple entries for {','.join(str(b) for b in brokers)}"
            for at, brokers in doubled
        )
        raise CommandError(f"Partition replica lists may not contain duplicate entries: {listed}")


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise CommandError("The input string is not a valid JSON") from None
    if not isinstance(document, dict):
        raise CommandError("The input string is not a valid JSON")
    version = document.get("version", 1)
    if version != 1:
        raise CommandError(f"Not supported version field value {version}")
    return document


def _entries(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    entries = _list(document.get(name, []))
    if not all(isinstance(entry, dict) for entry in entries):
        raise CommandError(f'"{name}" must list objects such as {{"topic": "foo"}}')
    return entries


def _value(entry: Mapping[str, Any], name: str) -> Any:
    if name not in entry:
        raise CommandError(f'The entry {json.dumps(entry)} has no "{name}"')
    return entry[name]


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise CommandError(f"{json.dumps(value)} must be a list")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise CommandError(f"{json.dumps(value)} must be a whole number")
    return value


def _twice(values: Iterable[Any]) -> list[Any]:
    return sorted(value for value, count in Counter(values).items() if count > 1)
