"""ksqlDB's functions with a clock that stands still, for tests of SQL."""

from functools import cache

from penstock.sql.functions.built_in import built_in
from penstock.sql.functions.table import FunctionTable, Surroundings


@cache
def sql_functions() -> FunctionTable:
    """All built-in functions."""
    return built_in(
        Surroundings(now_ms=lambda: 1_000, random=lambda: 0.5, random_bytes=lambda n: bytes(n))
    )
