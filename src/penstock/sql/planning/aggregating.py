"""GROUP BY as Streams has it: groups, windows, aggregates, and rows made of their results."""

from collections.abc import Callable
from typing import Any

from penstock.sql.analysis.logical import Grouping, WindowSpan
from penstock.sql.catalog.relations import WINDOWEND, WINDOWSTART
from penstock.sql.planning.evaluating import RowAggregates, RowCompiler
from penstock.sql.planning.joining import DEFAULT_GRACE_MS, Rows
from penstock.sql.planning.rows import ROW
from penstock.streams import (
    KStream,
    KTable,
    Serde,
    SessionWindows,
    TimeWindows,
    Windowed,
)

STORE = "Aggregate-Aggregate-Materialize"


def grouped(
    rows: Rows, grouping: Grouping, key_serde: Serde[Any], compiler: RowCompiler, *, is_final: bool
) -> KStream[Any, Any]:
    """The changes of the groups, as rows that HAVING lets through; None for one that went."""
    aggregates = compiler.aggregates(grouping.aggregates)
    if isinstance(rows, KTable):
        table = _of_table(rows, grouping, key_serde, compiler, aggregates)
    else:
        table = _of_stream(rows, grouping, key_serde, compiler, aggregates)
    final = _final_row(grouping, aggregates)
    finished = RowCompiler(compiler.checker, grouping.row, compiler.failed)
    if is_final:
        changes = (
            table.suppress_until_window_closes()
            .to_stream()
            .map(lambda key, states: (key, None if states is None else final(key, states)))
        )
        if grouping.having is None:
            return changes
        holds = finished.truth(grouping.having)
        return changes.filter(lambda key, row: row is not None and holds(row))
    if grouping.having is not None:
        holds = finished.truth(grouping.having)
        table = table.filter(lambda key, states: holds(final(key, states)))
        # A filter that knows the old row does not delete what nobody saw.
        table.graph.send_old(table.node)
    return table.to_stream().map(
        lambda key, states: (key, None if states is None else final(key, states))
    )


def _final_row(
    grouping: Grouping, aggregates: RowAggregates
) -> Callable[[Any, list[Any]], dict[str, Any]]:
    names = [key.name for key in grouping.keys]

    def final(key: Any, states: list[Any]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        if isinstance(key, Windowed):
            row = {WINDOWSTART: key.window.start_ms, WINDOWEND: key.window.end_ms}
            key = key.key
        row.update(zip(names, key, strict=True))
        row.update(aggregates.results(states))
        return row

    return final


def _of_table(
    table: KTable[Any, Any],
    grouping: Grouping,
    key_serde: Serde[Any],
    compiler: RowCompiler,
    aggregates: RowAggregates,
) -> KTable[Any, Any]:
    key_of = compiler.group_key(grouping.keys)
    groups = table.group_by(lambda _key, row: (key_of(row), row), key=key_serde, value=ROW)
    return groups.aggregate(
        aggregates.initial, aggregates.add, aggregates.undo, value=ROW, store=STORE
    )


def _of_stream(
    stream: KStream[Any, Any],
    grouping: Grouping,
    key_serde: Serde[Any],
    compiler: RowCompiler,
    aggregates: RowAggregates,
) -> KTable[Any, Any]:
    rows = stream.filter(lambda _key, row: row is not None)
    if grouping.rekeys:
        key_of = compiler.group_key(grouping.keys)
        rows = rows.map(lambda _key, row: (key_of(row), row)).repartition(
            key=key_serde, value=ROW, name="Aggregate-GroupBy"
        )
    groups = rows.group_by_key(key=key_serde, value=ROW)
    window = grouping.window
    if window is None:
        return groups.aggregate(aggregates.initial, aggregates.add, value=ROW, store=STORE)
    if window.kind == "SESSION":
        sessions = groups.windowed_by_session(
            SessionWindows.of(window.size_ms, grace_ms=_grace_ms(window))
        )
        return sessions.aggregate(
            aggregates.initial, aggregates.add, aggregates.merge, value=ROW, store=STORE
        )
    spans = TimeWindows.of(window.size_ms, advance_ms=window.advance_ms, grace_ms=_grace_ms(window))
    return groups.windowed_by(spans).aggregate(
        aggregates.initial, aggregates.add, value=ROW, store=STORE
    )


def _grace_ms(window: WindowSpan) -> int:
    """A day for the window and its grace together, as Kafka Streams had it before graces."""
    if window.grace_ms is not None:
        return window.grace_ms
    return max(0, DEFAULT_GRACE_MS - window.size_ms)
