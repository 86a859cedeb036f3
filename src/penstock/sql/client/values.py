"""Values between JSON and Python, by the types of their columns."""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from penstock.sql.language.parse import parse_one
from penstock.sql.language.place import SqlSyntaxError
from penstock.sql.language.statements import CreateType
from penstock.sql.types.kinds import ArrayOf, DataType, MapOf, StructOf, kind_name
from penstock.sql.types.moments import parse_date, parse_moment, parse_time
from penstock.sql.types.reading import UnknownType, data_type
from penstock.sql.types.text import date_text, time_text, timestamp_text

_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "DOUBLE": float,
    "DECIMAL": lambda value: value if isinstance(value, Decimal) else Decimal(str(value)),
    "BYTES": base64.b64decode,
    "DATE": parse_date,
    "TIME": parse_time,
    "TIMESTAMP": parse_moment,
}


@lru_cache(maxsize=4_096)
def type_named(text: str) -> DataType | None:
    """The type that a service names; None: one that this client does not know."""
    try:
        statement = parse_one(f"CREATE TYPE T AS {text}")
        return data_type(statement.type) if isinstance(statement, CreateType) else None
    except (SqlSyntaxError, UnknownType):
        return None


def value_of(read: Any, kind: DataType | None) -> Any:
    """A value as Python has it: Decimal, bytes, date, time, datetime in UTC, list, dict."""
    if read is None:
        return None
    match kind:
        case ArrayOf():
            return [value_of(one, kind.item) for one in read]
        case MapOf():
            return {value_of(k, kind.key): value_of(v, kind.value) for k, v in read.items()}
        case StructOf():
            return {name: value_of(read.get(name), one) for name, one in kind.fields}
    reader = _READERS.get(kind_name(kind))
    return read if reader is None else reader(read)


def json_text(value: Any) -> str:
    """A value of Python as JSON that loses nothing: exact numbers keep their digits."""
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(name))}:{json_text(one)}" for name, one in value.items())
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(json_text(one) for one in value)}]"
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return timestamp_text(value)
    if isinstance(value, date):
        return date_text(value)
    if isinstance(value, time):
        return time_text(value)
    return value
