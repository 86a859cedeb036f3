"""What each format writes, read back by itself and by libraries that know nothing of us."""

from dataclasses import replace
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from tests.unit.connect.connectors.objects.formats.samples import EVERYTHING, everything

from penstock.connect.connectors.objects.formats.avro_container import AvroContainer
from penstock.connect.connectors.objects.formats.contract import ObjectFormat
from penstock.connect.connectors.objects.formats.json_lines import JsonLines
from penstock.connect.connectors.objects.formats.parquet import ParquetObjects
from penstock.connect.connectors.objects.formats.raw_bytes import RawBytes
from penstock.connect.errors.kinds import DataError
from penstock.connect.values.logical import decimal_schema
from penstock.connect.values.schema import INT64_SCHEMA, STRING_SCHEMA, Schema, struct_schema
from penstock.connect.values.struct import StructValue


def written(form: ObjectFormat, schema: Schema | None, values: list[Any]) -> bytes:
    file = BytesIO()
    writer = form.writer(file, schema)
    for value in values:
        writer.write(value)
    writer.finish()
    return file.getvalue()


def read(form: ObjectFormat, data: bytes) -> list[Any]:
    return [value for _, value in form.read(BytesIO(data))]


def parts(value: StructValue) -> dict[str, Any]:
    return {
        one.name: parts(part) if isinstance(part, StructValue) else part
        for one, part in zip(value.schema.fields, value.values, strict=True)
    }


@pytest.mark.parametrize("form", [AvroContainer(), AvroContainer("deflate"), ParquetObjects()])
def test_values_with_a_schema_come_back_as_they_were(form: ObjectFormat) -> None:
    values = [everything(n) for n in range(1000)]
    data = written(form, EVERYTHING, values)
    found = read(form, data)
    assert [parts(one) for one in found] == [parts(one) for one in values]
    assert data == written(form, EVERYTHING, values)  # A replay changes no byte.


def test_avro_is_what_fastavro_reads() -> None:
    data = written(AvroContainer(), EVERYTHING, [everything(n) for n in range(5)])
    rows: list[Any] = list(fastavro.reader(BytesIO(data)))
    assert [row["i64"] for row in rows] == [n * 10**12 for n in range(5)]
    assert rows[2]["price"] == Decimal("-2.05")


def test_parquet_is_what_pyarrow_reads() -> None:
    data = written(ParquetObjects("zstd"), EVERYTHING, [everything(n) for n in range(5)])
    table = pq.read_table(BytesIO(data))
    assert table.column("text").to_pylist()[3] == "Zeile 3 ä€😀"
    assert str(table.schema.field("price").type) == "decimal128(38, 2)"
    assert not table.schema.field("i8").nullable


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "lz4", "zstd", "brotli"])
def test_parquet_has_its_codec_in_its_name(codec: str) -> None:
    form = ParquetObjects(codec)
    assert form.extension.endswith(".parquet")
    assert len(read(form, written(form, EVERYTHING, [everything(1)]))) == 1


def test_json_is_one_line_a_value_and_comes_back_without_schema() -> None:
    schema = struct_schema({"n": INT64_SCHEMA, "s": STRING_SCHEMA})
    values = [StructValue(schema, (n, "a\nb")) for n in range(3)]
    data = written(JsonLines(), schema, values)
    assert data.splitlines()[1] == b'{"n":1,"s":"a\\nb"}'
    assert read(JsonLines(), data) == [{"n": n, "s": "a\nb"} for n in range(3)]


def test_decimals_of_json_can_be_numbers() -> None:
    schema = decimal_schema(2)
    assert written(JsonLines("NUMERIC"), schema, [Decimal("1.50")]) == b"1.50\n"


def test_bytes_are_kept_with_a_separator_behind_each() -> None:
    form = RawBytes(".txt", "||")
    data = written(form, None, [b"a\nb", b"", b"c"])
    assert data == b"a\nb||||c||"
    assert read(form, data) == [b"a\nb", b"", b"c"]
    assert read(form, b"x||y") == [b"x", b"y"]


def test_a_value_that_cannot_be_written_leaves_nothing_behind() -> None:
    good = everything(1)
    odd = StructValue(EVERYTHING, ("no number", *good.values[1:]))
    half = StructValue(
        EVERYTHING, tuple("\ud800" if one == good["text"] else one for one in good.values)
    )
    long = replace(
        good,
        values=tuple(
            Decimal("1" * 70 + ".05") if isinstance(one, Decimal) else one for one in good.values
        ),
    )
    for form in (AvroContainer(), ParquetObjects()):
        file = BytesIO()
        writer = form.writer(file, EVERYTHING)
        writer.write(good)
        for bad in (odd, half, long, None, 5):
            with pytest.raises(DataError):
                writer.write(bad)
        writer.write(good)
        writer.finish()
        assert len(read(form, file.getvalue())) == 2
    with pytest.raises(DataError, match="ByteArrayConverter"):
        written(RawBytes(), None, ["text"])


def test_avro_and_parquet_need_a_schema_and_parquet_a_struct() -> None:
    for form in (AvroContainer(), ParquetObjects()):
        with pytest.raises(DataError, match="no schema"):
            form.writer(BytesIO(), None)
    with pytest.raises(DataError, match="has no fields"):
        ParquetObjects().writer(BytesIO(), STRING_SCHEMA)
    assert read(AvroContainer(), written(AvroContainer(), STRING_SCHEMA, ["a", "b"])) == ["a", "b"]


@pytest.mark.parametrize("form", [AvroContainer(), ParquetObjects(), JsonLines()])
@pytest.mark.parametrize(
    "data", [b"nonsense{", b"Obj\x01\x02", b"PAR1 and no more", b"\xff\xfe{\n"]
)
def test_what_is_not_of_the_format_is_a_data_error(form: ObjectFormat, data: bytes) -> None:
    with pytest.raises(DataError):
        read(form, data)


def test_a_file_that_ends_early_is_a_data_error() -> None:
    for form in (AvroContainer(), ParquetObjects()):
        data = written(form, EVERYTHING, [everything(n) for n in range(2000)])
        for end in (len(data) // 2, len(data) - 3, 30):
            with pytest.raises(DataError):
                read(form, data[:end])
