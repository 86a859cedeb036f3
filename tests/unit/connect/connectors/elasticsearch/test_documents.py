"""Records as lines of a bulk call, and what the answers mean."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from tests.support.connect_tasks import sink_record

from penstock.connect.connectors.elasticsearch.documents import (
    DocumentRules,
    LineOutcome,
    bulk_line,
    index_name,
    mapping_of,
    outcome_of,
)
from penstock.connect.errors.kinds import DataError
from penstock.connect.records import Header, SinkRecord
from penstock.connect.values.logical import TIMESTAMP_SCHEMA, decimal_schema
from penstock.connect.values.schema import (
    INT64_SCHEMA,
    STRING_SCHEMA,
    array_schema,
    struct_schema,
)
from penstock.connect.values.struct import StructValue

KEYED = DocumentRules(ignores_key=False, is_upsert=False, on_null="FAIL")
KEYLESS = replace(KEYED, ignores_key=True)


def lines(record: SinkRecord, rules: DocumentRules) -> list[Any]:
    made = bulk_line(record, rules)
    return [] if made is None else [json.loads(line) for line in made.content.splitlines()]


def test_a_key_is_the_id_and_the_offset_the_version() -> None:
    assert lines(sink_record({"n": 1}, 7, key="a"), KEYED) == [
        {"index": {"_index": "t", "_id": "a", "version": 7, "version_type": "external"}},
        {"n": 1},
    ]


def test_without_keys_the_place_in_the_topic_is_the_id() -> None:
    (action, _) = lines(sink_record({"n": 1}, 7, topic="T", partition=3), KEYLESS)
    version = {"version": 7, "version_type": "external_gte"}
    assert action == {"index": {"_index": "t", "_id": "T+3+7", **version}}


def test_an_upsert_has_no_version() -> None:
    (action, body) = lines(sink_record({"n": 1}, 7, key=5), replace(KEYED, is_upsert=True))
    assert action == {"update": {"_index": "t", "_id": "5", "retry_on_conflict": 3}}
    assert body == {"doc": {"n": 1}, "doc_as_upsert": True}


def test_a_null_deletes_is_passed_or_fails() -> None:
    record = sink_record(None, 7, key="a")
    (action,) = lines(record, replace(KEYED, on_null="DELETE"))
    assert action["delete"]["version"] == 7
    assert lines(record, replace(KEYED, on_null="IGNORE")) == []
    with pytest.raises(DataError, match="no value"):
        lines(record, KEYED)


def test_a_header_can_have_the_version() -> None:
    rules = replace(KEYED, version_header="v")
    record = replace(sink_record({}, 7, key="a"), headers=(Header("v", None, b"12"),))
    assert lines(record, rules)[0]["index"]["version"] == 12
    for headers in ((), (Header("v", None, "soon"),)):
        with pytest.raises(DataError):
            lines(replace(record, headers=headers), rules)


@pytest.mark.parametrize("key", [None, "", True, 1.5, {"a": 1}, "x" * 513])
def test_what_cannot_be_an_id_is_a_data_error(key: Any) -> None:
    with pytest.raises(DataError):
        lines(sink_record({}, 0, key=key), KEYED)


@pytest.mark.parametrize("value", ["text", 5, [1], True])
def test_what_has_no_fields_is_no_document(value: Any) -> None:
    with pytest.raises(DataError, match="HoistField"):
        lines(sink_record(value, 0, key="a"), KEYED)


def test_decimals_are_numbers() -> None:
    schema = struct_schema({"price": decimal_schema(2)})
    record = sink_record(StructValue(schema, (Decimal("1.50"),)), 0, key="a", schema=schema)
    made = bulk_line(record, KEYED)
    assert made is not None and b'{"price":1.50}' in made.content


def test_names_of_indexes_are_small_and_plain() -> None:
    assert index_name("Orders.EU") == "orders.eu"
    assert index_name("_a,b") == "a_b"
    with pytest.raises(DataError):
        index_name("..")


def item(status: int, kind: str = "", action: str = "index") -> dict[str, Any]:
    error = {"error": {"type": kind, "reason": "because"}} if kind else {}
    return {action: {"status": status, **error}}


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (item(201), LineOutcome.DONE),
        (item(404, action="delete"), LineOutcome.DONE),
        (item(409, "version_conflict_engine_exception"), LineOutcome.DONE),
        (item(409, "version_conflict_engine_exception", "update"), LineOutcome.AGAIN),
        (item(429, "rejected_execution_exception"), LineOutcome.AGAIN),
        (item(503, "unavailable_shards_exception"), LineOutcome.AGAIN),
        (item(400, "mapper_parsing_exception"), LineOutcome.MALFORMED),
        (item(400, "document_parsing_exception"), LineOutcome.MALFORMED),
        (item(403, "security_exception"), LineOutcome.REFUSED),
        (item(404, "index_not_found_exception"), LineOutcome.REFUSED),
    ],
)
def test_an_answer_is_done_again_malformed_or_refused(
    answer: dict[str, Any], wanted: LineOutcome
) -> None:
    assert outcome_of(answer)[0] is wanted


def test_a_schema_becomes_a_mapping() -> None:
    inner = struct_schema({"n": INT64_SCHEMA})
    schema = struct_schema(
        {"at": TIMESTAMP_SCHEMA, "tags": array_schema(STRING_SCHEMA), "inner": inner}
    )
    found = mapping_of(schema)["properties"]
    assert found["at"] == {"type": "date", "format": "epoch_millis"}
    assert found["tags"]["type"] == "text"
    assert found["inner"] == {"properties": {"n": {"type": "long"}}}
    with pytest.raises(DataError):
        mapping_of(STRING_SCHEMA)
