"""Records as lines, column by column, as Kafka's formatter prints them."""

from typing import Any

import pytest

from penstock.cli.record_printer import RecordPrinter
from penstock.client.errors import SerializationError
from penstock.client.values import ConsumerRecord
from penstock.errors import CommandError


def record(**fields: Any) -> ConsumerRecord[bytes, bytes]:
    values = {
        "topic": "t",
        "partition": 1,
        "offset": 7,
        "timestamp_ms": 1234,
        "timestamp_type": "CreateTime",
        "key": b"k",
        "value": b"v",
    }
    return ConsumerRecord(**{**values, **fields})


ALL = {
    "print.timestamp": "true",
    "print.partition": "true",
    "print.offset": "true",
    "print.headers": "true",
    "print.key": "true",
}


@pytest.mark.parametrize(
    ("properties", "fields", "line"),
    [
        ({}, {}, b"v\n"),
        ({}, {"value": None}, b"null\n"),
        ({}, {"value": b"\xff\xfe"}, b"\xff\xfe\n"),
        ({"print.key": "true"}, {}, b"k\tv\n"),
        ({"print.key": "true", "key.separator": "=>"}, {"key": None}, b"null=>v\n"),
        ({"print.key": "true", "print.value": "false"}, {}, b"k\n"),
        ({"null.literal": "-"}, {"value": None}, b"-\n"),
        ({"line.separator": "|"}, {}, b"v|"),
        (ALL, {}, b"CreateTime:1234\tPartition:1\tOffset:7\tNO_HEADERS\tk\tv\n"),
        (
            {**ALL, "headers.separator": ";"},
            {"headers": (("a", b"1"), ("b", None))},
            b"CreateTime:1234\tPartition:1\tOffset:7\ta:1;b:null\tk\tv\n",
        ),
        (
            {"print.timestamp": "true", "print.epoch": "true"},
            {"timestamp_type": "NoTimestampType"},
            b"NO_TIMESTAMP\tEpoch:NOT_PRESENT\tv\n",
        ),
        ({"print.epoch": "true"}, {"leader_epoch": 4}, b"Epoch:4\tv\n"),
        (
            {"value.deserializer": "org.apache.kafka.common.serialization.LongDeserializer"},
            {"value": (5).to_bytes(8, "big")},
            b"5\n",
        ),
    ],
)
def test_a_record_is_printed(
    properties: dict[str, str], fields: dict[str, Any], line: bytes
) -> None:
    assert RecordPrinter(properties).line(record(**fields)) == line


def test_a_property_that_does_not_exist_is_named() -> None:
    with pytest.raises(CommandError, match=r"print\.kye is not a property"):
        RecordPrinter({"print.kye": "true"})


def test_a_value_that_cannot_be_read_is_told() -> None:
    with pytest.raises(SerializationError):
        RecordPrinter({"value.deserializer": "long"}).line(record())
