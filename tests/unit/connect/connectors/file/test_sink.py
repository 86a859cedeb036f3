"""Values as lines of a file: as Java prints them."""

from pathlib import Path
from typing import Any

import pytest

from penstock.connect.connectors.file.sink import FileStreamSinkTask
from penstock.connect.records import SinkRecord, TimestampType
from penstock.connect.values.schema import STRING_SCHEMA, Schema, SchemaField, SchemaType
from penstock.connect.values.struct import StructValue

STRUCT = Schema(type=SchemaType.STRUCT, fields=(SchemaField("name", STRING_SCHEMA),))


@pytest.mark.parametrize(
    ("schema", "value", "line"),
    [
        (None, {"n": 1, "s": "x", "deep": [True, None]}, "{n=1, s=x, deep=[true, null]}"),
        (STRUCT, StructValue(STRUCT, ("a",)), "Struct{name=a}"),
        (STRING_SCHEMA, "word", "word"),
        (None, None, "null"),
        (None, 1.0, "1.0"),
    ],
)
def test_a_value_is_printed_as_java_prints_it(
    tmp_path: Path, schema: Schema | None, value: Any, line: str
) -> None:
    file = tmp_path / "out.txt"
    task = FileStreamSinkTask()
    task.start({"file": str(file)})
    task.put([_record(schema, value)])
    task.stop()
    assert file.read_text() == f"{line}\n"


def _record(schema: Schema | None, value: Any) -> SinkRecord:
    return SinkRecord(
        topic="t",
        partition=0,
        value_schema=schema,
        value=value,
        offset=0,
        timestamp_type=TimestampType.CREATE_TIME,
    )
