"""Messages that are kept rather than answered: their first two bytes say how to read the rest.

Coordinators keep their state in internal topics as pairs of such messages: the key opens with the
type of the record, the value with its version. Consumers embed others in the bytes that a group
coordinator passes on unread.
"""

from importlib import import_module
from struct import Struct as Layout
from struct import error as StructError
from typing import ClassVar, Self, cast

from penstock.protocol.primitives import MalformedMessage
from penstock.protocol.schema import Message

_PREFIX = Layout(">h")

# Which module declares the group coordinator's records of a type, and what their names begin with.
_GROUP_RECORDS = {
    0: ("group_records", "LegacyOffsetCommit"),
    1: ("group_records", "OffsetCommit"),
    2: ("group_records", "GroupMetadata"),
    3: ("consumer_group_records", "ConsumerGroupMetadata"),
    4: ("consumer_group_records", "ConsumerGroupPartitionMetadata"),
    5: ("consumer_group_records", "ConsumerGroupMemberMetadata"),
    6: ("consumer_group_records", "ConsumerGroupTargetAssignmentMetadata"),
    7: ("consumer_group_records", "ConsumerGroupTargetAssignmentMember"),
    8: ("consumer_group_records", "ConsumerGroupCurrentMemberAssignment"),
    10: ("share_group_records", "ShareGroupMemberMetadata"),
    11: ("share_group_records", "ShareGroupMetadata"),
    12: ("share_group_records", "ShareGroupTargetAssignmentMetadata"),
    13: ("share_group_records", "ShareGroupTargetAssignmentMember"),
    14: ("share_group_records", "ShareGroupCurrentMemberAssignment"),
    15: ("share_group_records", "ShareGroupStatePartitionMetadata"),
    16: ("consumer_group_records", "ConsumerGroupRegularExpression"),
    17: ("streams_group_records", "StreamsGroupMetadata"),
    19: ("streams_group_records", "StreamsGroupMemberMetadata"),
    20: ("streams_group_records", "StreamsGroupTargetAssignmentMetadata"),
    21: ("streams_group_records", "StreamsGroupTargetAssignmentMember"),
    22: ("streams_group_records", "StreamsGroupCurrentMemberAssignment"),
    23: ("streams_group_records", "StreamsGroupTopology"),
}


class Versioned(Message):
    """A message that opens with its own version and only ever grows at its end."""

    def to_bytes(self, version: int) -> bytes:
        """The version and the message in it."""
        return _PREFIX.pack(version) + self.encode(version)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """The message; of a version from the future, the part that is known."""
        version = read_prefix(data)
        if version > cls.versions[-1]:
            message, _ = cls.decode_prefix(data, cls.versions[-1], _PREFIX.size)
            return message
        _check_version(cls, version)
        return cls.decode(data, version, _PREFIX.size)


class RecordKey(Message):
    """What a coordinator's record is about; opens with the type of the record."""

    record_type: ClassVar[int]

    def __init_subclass__(cls, record_type: int) -> None:
        super().__init_subclass__(versions="0")
        cls.record_type = record_type

    def to_bytes(self) -> bytes:
        """The type and the key."""
        return _PREFIX.pack(self.record_type) + self.encode(0)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """The key, which must be of this type."""
        if (found := read_prefix(data)) != cls.record_type:
            raise MalformedMessage(f"a record of type {found} is no {cls.__name__}")
        return cls.decode(data, 0, _PREFIX.size)


class RecordValue(Message):
    """What a coordinator knows of the key; opens with the version it was written in."""

    record_type: ClassVar[int]

    def __init_subclass__(cls, record_type: int, versions: str, flexible: str = "") -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.record_type = record_type

    def to_bytes(self, version: int) -> bytes:
        """The version and the value in it."""
        return _PREFIX.pack(version) + self.encode(version)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """The value, in whichever known version it was written."""
        version = read_prefix(data)
        _check_version(cls, version)
        return cls.decode(data, version, _PREFIX.size)


def read_prefix(data: bytes | bytearray | memoryview) -> int:
    """The first two bytes: a record's type, or a message's version."""
    try:
        (value,) = _PREFIX.unpack_from(data)
    except StructError:
        raise MalformedMessage(f"{len(data)} bytes are too few for a stored message") from None
    return cast(int, value)


def group_record_classes(record_type: int) -> tuple[type[RecordKey], type[RecordValue]] | None:
    """Key and value of a type of record in `__consumer_offsets`; None for types unknown here."""
    if (found := _GROUP_RECORDS.get(record_type)) is None:
        return None
    module = import_module(f"penstock.protocol.messages.{found[0]}")
    key, value = getattr(module, found[1] + "Key"), getattr(module, found[1] + "Value")
    return cast(tuple[type[RecordKey], type[RecordValue]], (key, value))


def _check_version(cls: type[Message], version: int) -> None:
    if version not in cls.versions:
        raise MalformedMessage(f"{cls.__name__} has no version {version}")
