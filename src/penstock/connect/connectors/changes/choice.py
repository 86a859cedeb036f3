"""Which tables and columns are captured: lists of patterns, as Debezium has them.

A pattern stands for the whole name (`public.orders`, `public.orders.note`), whatever its case.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureChoice:
    """Lists to include and to exclude; an empty list to include means everything."""

    include_schemas: tuple[str, ...] = ()
    exclude_schemas: tuple[str, ...] = ()
    include_tables: tuple[str, ...] = ()
    exclude_tables: tuple[str, ...] = ()
    include_columns: tuple[str, ...] = ()
    exclude_columns: tuple[str, ...] = ()

    def has_table(self, schema: str, table: str) -> bool:
        """Whether a table is captured."""
        return _is_chosen(schema, self.include_schemas, self.exclude_schemas) and _is_chosen(
            f"{schema}.{table}", self.include_tables, self.exclude_tables
        )

    def has_column(self, schema: str, table: str, column: str) -> bool:
        """Whether a column of a captured table is in its records; a key's always are."""
        name = f"{schema}.{table}.{column}"
        return _is_chosen(name, self.include_columns, self.exclude_columns)


def bad_patterns(patterns: Iterable[str]) -> list[str]:
    """What is wrong with patterns, a sentence for each bad one."""
    found = []
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            found.append(f"{pattern} is no regular expression: {error}")
    return found


def _is_chosen(name: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> bool:
    if include:
        return any(_pattern(one).fullmatch(name) for one in include)
    return not any(_pattern(one).fullmatch(name) for one in exclude)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)
