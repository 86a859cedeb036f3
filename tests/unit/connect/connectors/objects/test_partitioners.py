"""Folders of records."""

import pytest
from tests.support.connect_tasks import sink_record
from tests.unit.connect.connectors.objects.rig import sink_config

from penstock.connect.connectors.objects.partitioners import partitioner
from penstock.connect.connectors.objects.settings import SINK_CONFIG
from penstock.connect.errors.kinds import DataError
from penstock.connect.records import SinkRecord
from penstock.connect.values.schema import STRING_SCHEMA, struct_schema
from penstock.connect.values.struct import StructValue

NOON_MS = 1_704_110_400_000 + 59 * 60_000  # 2024-01-01T12:59Z


def folder(record: SinkRecord, now_ms: int = 0, **more: str) -> str:
    return partitioner(SINK_CONFIG.parse(sink_config(**more)))(record, now_ms)


def test_by_default_the_partition_is_the_folder() -> None:
    assert folder(sink_record(1, 0, partition=7)) == "partition=7"


def test_fields_are_folders_one_in_the_other() -> None:
    more = {"partitioner_class": "x.FieldPartitioner", "partition_field_name": "city,at.n"}
    assert folder(sink_record({"city": "Bonn", "at": {"n": 3}}, 0), **more) == "city=Bonn/at.n=3"
    schema = struct_schema({"city": STRING_SCHEMA})
    struct = StructValue(schema, ("Köln",))
    named = {**more, "partition_field_name": "city"}
    assert folder(sink_record(struct, 0, schema=schema), **named) == "city=Köln"


def test_no_value_leads_out_of_its_folder() -> None:
    more = {"partitioner_class": "FieldPartitioner", "partition_field_name": "p"}
    found = folder(sink_record({"p": "../../etc/passwd\n%"}, 0), **more)
    assert found == "p=..%2F..%2Fetc%2Fpasswd%0A%25"


def test_a_record_without_the_field_is_a_data_error() -> None:
    more = {"partitioner_class": "FieldPartitioner", "partition_field_name": "p"}
    for value in ({"q": 1}, 5, {"p": [1]}):
        with pytest.raises(DataError, match="p"):
            folder(sink_record(value, 0), **more)


TIMED = {
    "partitioner_class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
    "path_format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
    "partition_duration_ms": "3600000",
    "timestamp_extractor": "Record",
    "timezone": "Asia/Kolkata",
}


def test_time_is_that_of_the_zone() -> None:
    found = folder(sink_record(1, 0, timestamp=NOON_MS), **TIMED)
    assert found == "year=2024/month=01/day=01/hour=18"


def test_a_duration_is_cut_by_the_clocks_of_the_zone() -> None:
    more = {**TIMED, "path_format": "HH-mm", "partition_duration_ms": "900000"}
    assert folder(sink_record(1, 0, timestamp=NOON_MS), **more) == "18-15"


@pytest.mark.parametrize("value", [NOON_MS, "2024-01-01T12:59:00Z", "2024-01-01T13:59:00+01:00"])
def test_the_time_can_be_in_a_field(value: object) -> None:
    more = {
        **TIMED,
        "timestamp_extractor": "RecordField",
        "timestamp_field": "at",
        "timezone": "UTC",
    }
    assert folder(sink_record({"at": value}, 0), **more).endswith("hour=12")


@pytest.mark.parametrize("value", [None, True, "soon", [1]])
def test_what_is_no_time_is_a_data_error(value: object) -> None:
    more = {**TIMED, "timestamp_extractor": "RecordField", "timestamp_field": "at"}
    with pytest.raises(DataError, match="no time"):
        folder(sink_record({"at": value}, 0), **more)


def test_days_and_hours_need_no_pattern() -> None:
    more = {**TIMED, "timestamp_extractor": "Wallclock", "timezone": "UTC"}
    for name, wanted in (("Daily", "day=01"), ("Hourly", "hour=12")):
        found = folder(
            sink_record(1, 0), NOON_MS, **{**more, "partitioner_class": f"{name}Partitioner"}
        )
        assert found.endswith(wanted)
