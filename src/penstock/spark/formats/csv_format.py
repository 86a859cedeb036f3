"""CSV values: one line a record, quoted as RFC 4180 says, the columns in the order of the schema.

Unlike Python's csv module this tells an empty text ("" in quotes) from a missing one (nothing at
all), which Spark writes differently too.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as t

from penstock.schemas.errors import DecodeError, SchemaError
from penstock.spark.formats.format import (
    DecodedValues,
    Format,
    ValueDecoder,
    arrow_type,
    decode_each,
    spark_type_of,
)
from penstock.spark.formats.json_format import WRITE_OPTIONS
from penstock.spark.formats.json_values import converter

_NUMBERS: dict[type[t.DataType], Callable[[str], Any]] = {
    t.ByteType: int,
    t.ShortType: int,
    t.IntegerType: int,
    t.LongType: int,
    t.FloatType: float,
    t.DoubleType: float,
    t.DecimalType: Decimal,
}
_BOOLEANS = {"true": True, "false": False}
_AS_TEXT = (t.StringType, t.DateType, t.TimestampType, t.TimestampNTZType)


@dataclass(frozen=True, slots=True)
class Csv(Format):
    """Separated values: `Csv("symbol string, price double")`."""

    schema: t.StructType | str
    delimiter: str = ","
    quote: str = '"'
    null: str = ""  # What stands for a missing value, outside of quotes.
    name = "CSV"

    def __post_init__(self) -> None:
        for what, mark in (("delimiter", self.delimiter), ("quote", self.quote)):
            if len(mark) != 1 or mark in "\r\n":
                raise SchemaError(f"the {what} of CSV is one character, not {mark!r}")
        if self.delimiter == self.quote:
            raise SchemaError("delimiter and quote of CSV must differ")

    def spark_type(self) -> t.StructType:
        found = spark_type_of(self.schema)
        if not isinstance(found, t.StructType) or not found.fields:
            raise SchemaError("the schema of CSV is a list of columns: 'id long, name string'")
        return found

    def bound(self, frame: DataFrame, column: str) -> "Csv":
        return replace(self, schema=self.spark_type())

    def decoder(self) -> ValueDecoder:
        return CsvDecoder(self)

    def expression(self, value: Column, spark_type: t.DataType) -> Column:
        from pyspark.sql import functions as f

        if not isinstance(spark_type, t.StructType):
            raise SchemaError(f"CSV is made of columns, not of {spark_type.simpleString()}")
        for field in spark_type.fields:
            _text_converter(field)
        options = {
            **WRITE_OPTIONS,
            "sep": self.delimiter,
            "quote": self.quote,
            "escape": self.quote,
            "nullValue": self.null,
            "emptyValue": self.quote * 2,
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
        }
        return f.when(value.isNotNull(), f.to_csv(value, options).cast("binary"))


class CsvDecoder:
    """Decodes batches of CSV lines."""

    def __init__(self, csv: Csv) -> None:
        spark_type = csv.spark_type()
        self._target = arrow_type(spark_type)
        self._fields = [(field.name, _text_converter(field)) for field in spark_type.fields]
        self._null = csv.null
        self._quote = csv.quote
        quote, delimiter = re.escape(csv.quote), re.escape(csv.delimiter)
        self._field = re.compile(
            f"(?:{quote}((?:[^{quote}]|{quote}{quote})*){quote}|([^{quote}{delimiter}\r\n]*))"
            f"({delimiter}|$)"
        )

    def decode(self, values: pa.Array) -> DecodedValues:
        """All values of a batch."""
        return decode_each(values, self._one, self._target, self._target)

    def _one(self, data: bytes) -> object:
        try:
            line = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError(f"the CSV is not UTF-8 at byte {error.start}") from error
        cells = self._cells(line.removesuffix("\n").removesuffix("\r"))
        if len(cells) != len(self._fields):
            raise DecodeError(f"the line has {len(cells)} columns instead of {len(self._fields)}")
        return {
            name: None if cell is None else convert(cell)
            for (name, convert), cell in zip(self._fields, cells, strict=True)
        }

    def _cells(self, line: str) -> list[str | None]:
        cells: list[str | None] = []
        at = 0
        while True:
            found = self._field.match(line, at)
            if found is None:
                raise DecodeError(f"a quote or line end is out of place behind character {at}")
            quoted, bare, end = found.groups()
            if quoted is not None:
                cells.append(quoted.replace(self._quote * 2, self._quote))
            else:
                cells.append(None if bare == self._null else bare)
            at = found.end()
            if not end:
                return cells


def _text_converter(field: t.StructField) -> Callable[[str], Any]:
    kind = type(field.dataType)
    if kind in _AS_TEXT:
        return converter(field.dataType, field.name)
    if kind is t.BooleanType:
        return _parsed(_boolean, converter(field.dataType, field.name), field)
    if kind in _NUMBERS:
        return _parsed(_NUMBERS[kind], converter(field.dataType, field.name), field)
    raise SchemaError(f"CSV has no form for {field.name} {field.dataType.simpleString()}")


def _parsed(
    parse: Callable[[str], Any], convert: Callable[[Any], Any], field: t.StructField
) -> Callable[[str], Any]:
    def from_text(text: str) -> Any:
        try:
            parsed = parse(text.replace("_", "?"))  # Python would let 1_000 pass for a number.
        except (ValueError, ArithmeticError, KeyError) as error:
            words = field.dataType.simpleString()
            raise DecodeError(f"{field.name} is not a {words}: {text[:60]}") from error
        return convert(parsed)

    return from_text


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.lower()]
