"""From rules of the grammar to queries: one method for each rule."""

from typing import Any

from penstock.sql.language import expressions as x
from penstock.sql.language import queries as q
from penstock.sql.language.place import Place, SqlSyntaxError
from penstock.sql.language.reduce_expressions import ExpressionBuilder, given, optional, rule


class QueryBuilder(ExpressionBuilder):
    """The rules of a SELECT."""

    @rule
    def selected(self, _at: Place, value: Any, *alias: str | None) -> q.Selected:
        return q.Selected(value, optional(alias[-1]))

    @rule
    def star(self, at: Place, _star: str) -> x.Star:
        return x.Star(None, None, at)

    @rule
    def source_star(self, at: Place, source: str, _star: str) -> x.Star:
        return x.Star(str(source), None, at)

    @rule
    def field_star(self, at: Place, record: Any, _star: str) -> x.Star:
        return x.Star(None, record, at)

    @rule
    def source(self, at: Place, name: str, *alias: str | None) -> q.Source:
        return q.Source(str(name), str(given(alias)[-1] if any(alias) else name), at)

    @rule
    def kind(self, _at: Place, word: str, _outer: None = None) -> str:
        return word.upper()

    @rule
    def join(self, at: Place, kind: Any, source: q.Source, within: Any, condition: Any) -> q.Join:
        return q.Join(kind or "INNER", source, condition, within)

    @rule
    def within(self, _at: Place, span: tuple[q.Duration, q.Duration], grace: Any) -> q.JoinReach:
        return q.JoinReach(*span, grace)

    @rule
    def span(self, _at: Place, before: q.Duration, after: q.Duration | None = None) -> Any:
        return before, after or before

    @rule
    def window(self, _at: Place, *parts: Any) -> q.SqlWindow:
        return parts[-1]  # type: ignore[no-any-return]

    @rule
    def tumbling(self, _at: Place, size: q.Duration, kept: Any) -> q.Tumbling:
        return q.Tumbling(size, *kept)

    @rule
    def hopping(self, _at: Place, size: q.Duration, advance: q.Duration, kept: Any) -> q.Hopping:
        return q.Hopping(size, advance, *kept)

    @rule
    def session(self, _at: Place, _word: str, gap: q.Duration, kept: Any) -> q.SessionGap:
        return q.SessionGap(gap, *kept)

    @rule
    def kept(self, _at: Place, retention: Any, grace: Any) -> tuple[Any, Any]:
        return retention, grace

    @rule
    def duration(self, at: Place, count: str, unit: str) -> q.Duration:
        if len(count) > 15:
            raise SqlSyntaxError("the time is too long", place=at)
        return q.Duration(int(count), unit)

    @rule
    def unit(self, _at: Place, word: str) -> str:
        return word.upper().removesuffix("S")

    @rule
    def where(self, _at: Place, condition: Any) -> Any:
        return condition

    having = where
    otherwise = where
    timeout = where
    grace = where
    retention = where
    later = where
    group_by = where
    partition_by = where
    keys = ExpressionBuilder.arguments

    @rule
    def emit(self, _at: Place, _emit: str, what: str) -> str:
        return what.upper()

    @rule
    def limit(self, at: Place, count: str) -> int:
        if len(count) > 9:
            raise SqlSyntaxError("the limit is too large", place=at)
        return int(count)

    @rule
    def query(self, at: Place, *parts: Any) -> q.Select:
        *front, window, where, group_by, partition_by, having, emit, limit = parts
        joins = tuple(p for p in front if isinstance(p, q.Join))
        items = tuple(p for p in front if not isinstance(p, q.Join | q.Source))
        (source,) = (p for p in front if isinstance(p, q.Source))
        return q.Select(
            items=items,
            source=source,
            joins=joins,
            window=window,
            where=where,
            group_by=group_by or (),
            partition_by=partition_by or (),
            having=having,
            emit=emit,
            limit=limit,
            at=at,
        )
