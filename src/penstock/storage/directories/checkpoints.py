"""The text files in which a log directory keeps offsets, in Apache Kafka's format.

    0                       version
    2                       number of lines that follow
    orders 0 1234           topic, partition, offset

Each log directory has one for recovery points, high watermarks, log start offsets and the
cleaner. Beside them here: the note a clean stop leaves, and a partition's topic id.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from penstock.errors import CorruptRecord
from penstock.protocol.primitives import uuid_from_text, uuid_text
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.durable_file import replace_file, sync_directory

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_STOP: Final = ".kafka_cleanshutdown"
PARTITION_METADATA: Final = "partition.metadata"

_VERSION: Final = "0"
_TOPIC_ID: Final = re.compile(r"version: (\d+)\ntopic_id: (\S+)\s*\Z")

Offsets = dict[TopicPartition, int]


def write_checkpoint(path: Path, lines: list[str], *, is_synced: bool = True) -> None:
    text = "\n".join([_VERSION, str(len(lines)), *lines, ""])
    replace_file(path, text, is_synced=is_synced)


def read_checkpoint(path: Path) -> list[list[str]]:
    """The words of each line; CorruptRecord if the file is not whole."""
    lines = path.read_text().splitlines()
    if len(lines) < 2 or lines[0].strip() != _VERSION:
        raise CorruptRecord(f"{path} does not begin with version {_VERSION}")
    if not lines[1].strip().isdecimal() or int(lines[1]) != len(lines) - 2:
        raise CorruptRecord(f"{path} says {lines[1]} lines and has {len(lines) - 2}")
    return [line.split() for line in lines[2:]]


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    write_checkpoint(path, [f"{tp.topic} {tp.partition} {at}" for tp, at in offsets.items()])


def read_offsets(path: Path) -> Offsets:
    """The offsets of a directory; none where the file was never written."""
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset)
            for topic, partition, offset in read_checkpoint(path)
        }
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CorruptRecord(f"{path} has a line that is not topic, partition, offset") from error


def write_clean_stop(directory: Path, broker_epoch: int) -> None:
    text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(directory / CLEAN_STOP, text)


def take_clean_stop(directory: Path) -> int | None:
    """Remove the note of a clean stop; the broker epoch in it, -1 if it has none, None: no note.

    The removal is flushed: were it to come back after a power cut, a crash would look clean.
    """
    path = directory / CLEAN_STOP
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    path.unlink()
    sync_directory(directory)
    try:
        return int(json.loads(text)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1  # Before Kafka 3.7 the file was empty.


def write_topic_id(directory: Path, topic_id: bytes, *, is_synced: bool = False) -> None:
    """Unless told, left to the log's first flush to bring to the disk."""
    text = f"version: 0\ntopic_id: {uuid_text(topic_id)}"
    replace_file(directory / PARTITION_METADATA, text, is_synced=is_synced)


def read_topic_id(directory: Path) -> bytes | None:
    """The id of the topic a partition's directory belongs to; None: it was never written."""
    path = directory / PARTITION_METADATA
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    if not text.strip("\0"):
        return None  # A power cut came before the first flush; some filesystems leave zeros.
    match = _TOPIC_ID.match(text)
    if match is None or match[1] != _VERSION:
        raise CorruptRecord(f"{path} does not hold a topic id")
    return uuid_from_text(match[2])
