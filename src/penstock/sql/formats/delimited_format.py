"""DELIMITED: one line of values; an empty one is NULL."""

import base64
import csv
import io
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.formats import moments
from penstock.sql.formats.codec import FormatCodec, FormatMisfit, Values
from penstock.sql.formats.json_format import json_value
from penstock.sql.types.text import double_text

_NUMBERS = ("TIMESTAMP", "DATE", "TIME")


def delimited_codec(columns: Sequence[RelationColumn], *, delimiter: str = ",") -> FormatCodec:
    """The codec of the columns."""

    def write(values: Values) -> bytes:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, lineterminator="").writerow(map(_text, values))
        return out.getvalue().encode()

    def read(data: bytes) -> list[Any]:
        cells = _cells(data, delimiter)
        if len(cells) != len(columns):
            raise FormatMisfit(f"Unexpected field count, csvFields:{len(cells)} "
                               f"schemaFields:{len(columns)}")  # fmt: skip
        return [_value(cell, column) for cell, column in zip(cells, columns, strict=True)]

    return FormatCodec(write, read)


def _cells(data: bytes, delimiter: str) -> list[str]:
    try:
        rows = list(csv.reader(io.StringIO(data.decode()), delimiter=delimiter, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatMisfit(f"the bytes are not delimited text: {error}") from None
    return rows[0] if rows else [""]


def _value(cell: str, column: RelationColumn) -> Any:
    if cell == "":
        return None
    name = str(column.type)
    if name == "BOOLEAN":
        return cell.strip().lower() == "true"
    if name == "STRING":
        return cell
    text = cell.strip()
    if name in _NUMBERS:
        if not text.lstrip("-").isdigit():
            raise FormatMisfit(f"{cell[:80]!r} is not a {name}, which {column.name} is")
        return json_value(int(text), column.type, column.name)
    return json_value(text, column.type, column.name)


def _text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case Decimal():
            return f"{value:f}"
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            return str(moments.timestamp_ms(value))
        case date():
            return str(moments.date_days(value))
        case time():
            return str(moments.time_ms(value))
    return str(value)
