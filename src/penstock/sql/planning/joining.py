"""Joins as Streams has them: sides are laid by the join's key where they are not yet."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from penstock.sql.analysis.logical import JOIN_KEY, JoinSpan, JoinStep
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.language.expressions import Expression
from penstock.sql.planning.evaluating import RowCompiler, RowValue
from penstock.sql.planning.rows import ROW
from penstock.streams import JoinWindows, KStream, KTable, Serde

DEFAULT_GRACE_MS = 24 * 3_600_000
Rows = KStream[Any, Any] | KTable[Any, Any]
Joiner = Callable[[RowValue | None, RowValue | None], dict[str, Any]]


def joined(
    left: Rows,
    right: Rows,
    step: JoinStep,
    compiler: RowCompiler,
    *,
    nothing: tuple[dict[str, None], dict[str, None]],
    formats_differ: bool,
) -> Rows:
    """Both sides as one; `nothing` is what a missing side puts into a row."""
    joiner = _joiner(step, compiler, nothing)
    made: Rows
    match step.shape:
        case "STREAM-STREAM":
            made = _streams(left, right, step, compiler, joiner, formats_differ)
        case "STREAM-TABLE":
            made = _stream_table(left, right, step, compiler, joiner, formats_differ)
        case "TABLE-TABLE":
            made = _tables(left, right, step, joiner, formats_differ)
        case "FOREIGN-KEY":
            made = _foreign(left, right, step, compiler, joiner)
    return made


def _joiner(
    step: JoinStep, compiler: RowCompiler, nothing: tuple[dict[str, None], dict[str, None]]
) -> Joiner:
    left_key = right_key = None
    if step.has_join_key:
        left_key, right_key = compiler.value(step.left_key), compiler.value(step.right_key)

    def join(left: RowValue | None, right: RowValue | None) -> dict[str, Any]:
        row: dict[str, Any] = {**(left or nothing[0]), **(right or nothing[1])}
        if left_key is not None and right_key is not None:
            row[JOIN_KEY] = right_key(right or {}) if left is None else left_key(left)
        return row

    return join


def by_key(
    stream: KStream[Any, Any], key: Expression, serde: Serde[Any], compiler: RowCompiler
) -> KStream[Any, Any]:
    """The stream by another key, through a repartition topic."""
    key_of = compiler.key([key])
    moved = stream.map(lambda _key, row: (None if row is None else key_of(row), row))
    return moved.repartition(key=serde, value=ROW)


def _streams(
    left: Any, right: Any, step: JoinStep, compiler: RowCompiler, joiner: Joiner, differ: bool
) -> Any:
    if step.rekeys_left:
        serde = ROW if step.rekeys_right else right.key_serde
        left = by_key(left, step.left_key, serde, compiler)
    if step.rekeys_right or (differ and not step.rekeys_left):
        right = by_key(right, step.right_key, left.key_serde, compiler)
    assert step.within is not None
    if step.kind == "RIGHT":
        flipped = JoinSpan(
            before_ms=step.within.after_ms,
            after_ms=step.within.before_ms,
            grace_ms=step.within.grace_ms,
        )
        windows = _windows(flipped, is_inner=False)
        made = right.left_join(left, lambda mine, its: joiner(its, mine), windows)
    else:
        join = {"INNER": left.join, "LEFT": left.left_join, "FULL": left.outer_join}[step.kind]
        made = join(right, joiner, _windows(step.within, is_inner=step.kind == "INNER"))
    return replace(made, key_serde=left.key_serde, value_serde=ROW)


def _windows(span: JoinSpan, *, is_inner: bool) -> JoinWindows:
    """Without GRACE PERIOD an inner join takes late records for a day, an outer one none."""
    default_ms = max(0, DEFAULT_GRACE_MS - span.before_ms - span.after_ms) if is_inner else 0
    grace_ms = default_ms if span.grace_ms is None else span.grace_ms
    return JoinWindows.of(0, before_ms=span.before_ms, after_ms=span.after_ms, grace_ms=grace_ms)


def _stream_table(
    left: Any, right: Any, step: JoinStep, compiler: RowCompiler, joiner: Joiner, differ: bool
) -> Any:
    if step.rekeys_left or differ:
        left = by_key(left, step.left_key, right.key_serde, compiler)
    join = left.join_table if step.kind == "INNER" else left.left_join_table
    return replace(join(right, joiner), key_serde=left.key_serde, value_serde=ROW)


def _tables(left: Any, right: Any, step: JoinStep, joiner: Joiner, differ: bool) -> Any:
    if differ:
        raise StatementRefused(
            "The key formats of the two tables differ, so equal keys may lie in different "
            "partitions. Create one of them anew with the other's KEY_FORMAT."
        )
    if step.kind == "RIGHT":
        made = right.left_join(left, lambda mine, its: joiner(its, mine))
    else:
        join = {"INNER": left.join, "LEFT": left.left_join, "FULL": left.outer_join}[step.kind]
        made = join(right, joiner)
    return replace(made, key_serde=left.key_serde, value_serde=ROW)


def _foreign(left: Any, right: Any, step: JoinStep, compiler: RowCompiler, joiner: Joiner) -> Any:
    key_of = compiler.key([step.left_key])
    is_inner = step.kind == "INNER"
    join = left.join_foreign_key if is_inner else left.left_join_foreign_key
    made = join(right, lambda _key, row: key_of(row), joiner)
    return replace(made, key_serde=left.key_serde, value_serde=ROW)
