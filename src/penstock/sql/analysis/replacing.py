"""CREATE OR REPLACE: what may change of a stream or table, and of the query that makes it."""

from penstock.sql.analysis.logical import LogicalQuery
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import Relation


def check_replaced(before: Relation, after: Relation) -> None:
    """A relation may get columns at its end; all else stays."""
    told = (
        ("kind", before.kind, after.kind),
        ("topic", before.topic, after.topic),
        ("key format", before.key_format, after.key_format),
        ("value format", before.value_format, after.value_format),
        ("windows", before.key_window, after.key_window),
        ("key columns", before.columns.keys, after.columns.keys),
        ("timestamp column", before.time, after.time),
    )
    for what, old, new in told:
        if old != new:
            reason = f"it was {_text(old)} and cannot become {_text(new)}."
            _refuse(before, f"DataSource '{before.name}' has a different {what}: {reason}")
    if (before.query is None) != (after.query is None):
        _refuse(before, "a query cannot take the place of a topic, nor the other way round.")
    kept = after.columns.values[: len(before.columns.values)]
    if kept != before.columns.values:
        lost = [c for c in before.columns.values if c not in after.columns.values]
        _refuse(before, "columns can only be added at the end: missing, changed or moved are "
                        f"{', '.join(str(c) for c in lost or before.columns.values)}.")  # fmt: skip


def check_query_replaced(name: str, before: LogicalQuery, after: LogicalQuery) -> None:
    """A filter and a projection may change; what state is kept by may not."""
    told = (
        ("sources", before.source_names, after.source_names),
        ("joins", before.joins, after.joins),
        ("PARTITION BY", before.partitioning, after.partitioning),
        ("GROUP BY", _group(before), _group(after)),
        ("table functions", before.exploded, after.exploded),
    )
    for what, old, new in told:
        if old != new:
            raise StatementRefused(
                f"Upgrades not yet supported: the {what} of {name} cannot change. DROP it and "
                "create it anew."
            )
    if before.grouping is not None and before.where != after.where:
        raise StatementRefused(
            f"Upgrades not yet supported: the WHERE of the aggregation {name} cannot change, for "
            "what it added up would stay."
        )


def _group(query: LogicalQuery) -> object:
    grouping = query.grouping
    if grouping is None:
        return None
    return grouping.keys, grouping.window, tuple(one.call for one in grouping.aggregates)


def _refuse(before: Relation, reason: str) -> None:
    raise StatementRefused(f"Cannot upgrade data source: {before.name}: {reason}")


def _text(part: object) -> str:
    if isinstance(part, tuple):
        return ", ".join(str(one) for one in part) or "none"
    return str(part)
