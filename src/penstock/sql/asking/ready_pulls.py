"""Pull queries by key that differ only in the key: understood once, then answered at once.

An application asks the same of many keys. Taking its statement apart and finding out what it means
costs far more than the row, so that is kept by the statement's shape: its text without literals.

    SELECT n FROM t WHERE k = 'a' LIMIT 1   →   SELECT n FROM t WHERE k = ' LIMIT #,  ('a', 1)

Statements of one shape mean the same where their literals are the same, but for those that the key
is compared with. What is kept holds as long as the catalog does. It is answered on the event loop,
so nothing is kept that could hold up others: functions, which may be users' own and change with
their files, and formats whose schemas a registry keeps.
"""

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, Final

from penstock.sql.analysis.logical import LogicalQuery
from penstock.sql.analysis.pulling import PullQuery
from penstock.sql.analysis.walking import calls_of, conjuncts
from penstock.sql.asking.pull import Puller
from penstock.sql.asking.row_reader import AnswerRow, RowReader
from penstock.sql.asking.table_follower import TableFollower
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.formats.serdes import asks_registry, key_serde
from penstock.sql.language.expressions import Binary, ColumnName, Literal
from penstock.sql.planning.planner import Planner
from penstock.sql.running.scope import RequestScope
from penstock.sql.types.kinds import STRING, WHOLE, DataType
from penstock.streams import Serde

_KEPT_MAX: Final = 256
_TEXT_MAX: Final = 4096
# Strings, and whole numbers that are INTEGER whatever their digits.
_LITERALS: Final = re.compile(r"'((?:[^']|'')*)'|(?<![\w.])([0-9]{1,9})(?![\w.])")
_UNSURE: Final = ("--", "/*", '"', "`", "${")  # Where a quote may be none, or a literal a name.

Literals = tuple[str | int, ...]
Shape = tuple[str, int, tuple[tuple[str, str], ...]]  # Text, number of literals, properties.


def shape_of(text: str) -> tuple[str, Literals] | None:
    """A statement's text without its literals, and those; None where that is not certain."""
    if len(text) > _TEXT_MAX or any(mark in text for mark in _UNSURE):
        return None
    literals: list[str | int] = []

    def taken(found: re.Match[str]) -> str:
        if found[1] is None:
            literals.append(int(found[2]))
            return "#"
        literals.append(found[1].replace("''", "'"))
        return "'"

    return _LITERALS.sub(taken, text), tuple(literals)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyPull:
    """A query by key, but for the key."""

    catalog: Catalog
    fixed: dict[int, str | int]  # Literals that are not the key's, by their places.
    places: tuple[int, ...]  # Of the literals that are the key, in the key's order.
    topic: str
    key: Serde[Any]
    reader: RowReader
    columns: tuple[RelationColumn, ...]

    def rows(self, literals: Literals, follower: TableFollower) -> list[AnswerRow]:
        """The row of a key, if there is one."""
        key = tuple(literals[place] for place in self.places)
        record = follower.get(self.key.serialize(key) or b"")
        if record is None:
            return []
        return [row for row in self.reader.anew().rows(record) if not row.is_tombstone]


class ReadyPulls:
    """What is kept, the last learned of it; for any thread."""

    def __init__(self, puller: Puller) -> None:
        self._puller = puller
        self._lock = threading.Lock()
        self._known: OrderedDict[Shape, ReadyPull] = OrderedDict()

    def answer(
        self, text: str, scope: RequestScope, catalog: Catalog
    ) -> tuple[tuple[RelationColumn, ...], list[AnswerRow]] | None:
        """Columns and rows; None: the statement must be looked at."""
        found = shape_of(text)
        if found is None or scope.variables:
            return None
        shape, literals = found
        with self._lock:
            known = self._known.get(_kept_as(shape, literals, scope))
        if known is None or known.catalog is not catalog:
            return None
        if any(literals[place] != value for place, value in known.fixed.items()):
            return None
        follower = self._puller.followers.at_hand(known.topic)
        return None if follower is None else (known.columns, known.rows(literals, follower))

    def learn(
        self,
        text: str,
        scope: RequestScope,
        catalog: Catalog,
        query: PullQuery,
        planner: Planner,
        columns: tuple[RelationColumn, ...],
    ) -> None:
        """Keep what a statement means, where it asks for one key and nothing else."""
        found, values = shape_of(text), key_values(query.logical)
        if found is None or scope.variables or values is None:
            return
        shape, literals = found
        places = places_of(values, literals)
        if places is None:
            return
        relation = query.logical.sources[0].relation
        # The row that is found has the key: nothing is left of the condition.
        unconditional = replace(query.logical, where=None)
        ready = ReadyPull(
            catalog=catalog,
            fixed={at: value for at, value in enumerate(literals) if at not in places},
            places=places,
            topic=relation.topic,
            key=key_serde(
                relation.columns.keys, relation.key_format, relation.topic, planner.schemas
            ),
            reader=RowReader(unconditional, planner, self._puller.failed),
            columns=columns,
        )
        kept_as = _kept_as(shape, literals, scope)
        with self._lock:
            self._known[kept_as] = ready
            self._known.move_to_end(kept_as)
            if len(self._known) > _KEPT_MAX:
                self._known.popitem(last=False)


def _kept_as(shape: str, literals: Literals, scope: RequestScope) -> Shape:
    return shape, len(literals), tuple(sorted(scope.properties.items()))


def key_values(logical: LogicalQuery) -> Literals | None:
    """The key that a condition names and that is all it says, in the key's order."""
    source = logical.sources[0]
    if source.relation.kind != "TABLE" or source.relation.key_window is not None:
        return None
    if logical.where is None or logical.limit == 0 or _may_wait(logical):
        return None
    found: dict[str, str | int] = {}
    for part in conjuncts(logical.where):
        named = _compared(part)
        if named is None or named[0] in found or not _is_of(named[1], logical.row[named[0]]):
            return None
        found[named[0]] = named[1]
    if found.keys() != set(source.key_names):
        return None
    return tuple(found[name] for name in source.key_names)


def _may_wait(logical: LogicalQuery) -> bool:
    relation = logical.sources[0].relation
    return (
        asks_registry(relation.key_format)
        or asks_registry(relation.value_format)
        or any(calls_of(output.expression) for output in logical.outputs)
    )


def places_of(values: Literals, literals: Literals) -> tuple[int, ...] | None:
    """Where the values stand among the literals; None where one could be another."""
    found = [[at for at, one in enumerate(literals) if one == value] for value in values]
    return tuple(at for (at,) in found) if all(len(places) == 1 for places in found) else None


def _compared(part: Any) -> tuple[str, str | int] | None:
    if not isinstance(part, Binary) or part.operator != "=":
        return None
    for column, other in ((part.left, part.right), (part.right, part.left)):
        if isinstance(column, ColumnName) and isinstance(other, Literal):
            value = other.value
            is_plain = isinstance(value, str | int) and not isinstance(value, bool)
            return (column.name, value) if is_plain else None  # type: ignore[return-value]
    return None


def _is_of(value: str | int, kind: DataType) -> bool:
    """Whether a literal has the column's type as it is."""
    return kind == STRING if isinstance(value, str) else kind in WHOLE
