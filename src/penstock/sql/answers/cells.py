"""The values of a row as JSON, in the way ksqlDB's API writes them: moments are texts."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from typing import Any

from penstock.sql.formats.json_format import json_text
from penstock.sql.types.text import date_text, time_text, timestamp_text


def cells_text(values: Iterable[Any]) -> str:
    """A row as a JSON array."""
    return "[" + ",".join(json_text(shown_cell(value)) for value in values) + "]"


def named_cells_text(row: Mapping[str, Any]) -> str:
    """A row as a JSON object."""
    return json_text({name: shown_cell(value) for name, value in row.items()})


def shown_cell(value: Any) -> Any:
    """A value of which JSON can be made."""
    match value:
        case datetime():
            return timestamp_text(value)
        case date():
            return date_text(value)
        case time():
            return time_text(value)
        case list() | tuple():
            return [shown_cell(one) for one in value]
        case dict():
            return {key: shown_cell(one) for key, one in value.items()}
    return value
