"""Records of the offset topic: how far a source connector is with one of its partitions.

The key is `["<connector>",{<partition>}]`, the value `{<offset>}`; a null forgets the partition.
The topic has many partitions, and a key's bytes decide which, so they are made in one way: no
spaces, fields in the order in which the connector gives them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from penstock.connect.store.config_records import LogEntry
from penstock.connect.store.json_text import DamagedEntry, decode, encode

SourcePartition: TypeAlias = Mapping[str, Any]
SourceOffset: TypeAlias = Mapping[str, Any]


class OffsetEntry(NamedTuple):
    """How far a connector is with a partition; an offset of None: from the beginning."""

    connector: str
    partition: dict[str, Any]
    offset: dict[str, Any] | None


def encode_offset(
    connector: str, partition: SourcePartition, offset: SourceOffset | None
) -> LogEntry:
    """The record that says so."""
    value = None if offset is None else encode(dict(offset))
    return LogEntry(offset_key(connector, partition), value)


def offset_key(connector: str, partition: SourcePartition) -> bytes:
    """What the topic knows a partition by."""
    return encode([connector, dict(partition)])


def decode_offset(key: bytes | None, value: bytes | None) -> OffsetEntry:
    """What a record says; DamagedEntry if it is no record of an offset."""
    named = decode(key or b"")
    if not isinstance(named, list) or len(named) != 2:
        raise DamagedEntry("the key is no pair of connector and partition")
    connector, partition = named
    offset = None if value is None else decode(value)
    if not isinstance(connector, str) or not isinstance(partition, dict):
        raise DamagedEntry("the key is no pair of connector and partition")
    if offset is not None and not isinstance(offset, dict):
        raise DamagedEntry("the offset is no JSON object")
    return OffsetEntry(connector, partition, offset)


def canonical(partition: SourcePartition) -> bytes:
    """The same bytes for equal partitions, whatever the order of their fields."""
    return encode(dict(sorted(partition.items())))
