"""Topics as lake tables: Delta, Iceberg and Parquet, exactly once.

    from penstock import lake

    lake.sync("orders", to="lake/orders", bootstrap="localhost:9092", once=True).awaitTermination()
    lake.table(averages, to="lake/averages", merge_on=["symbol"])

`sync` lands a topic, `table` any streaming data frame; `parquet_files` lists the files of a Parquet
table by its log. Importing this package costs nothing: Spark is loaded with the first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.lake.formats.parquet import parquet_files
    from penstock.lake.maintenance import compact
    from penstock.lake.query import LakeQuery, table
    from penstock.lake.topic_table import sync

__all__ = ["LakeQuery", "compact", "parquet_files", "sync", "table"]

_HOMES = {
    "LakeQuery": "query",
    "compact": "maintenance",
    "parquet_files": "formats.parquet",
    "sync": "topic_table",
    "table": "query",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"penstock.lake.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
