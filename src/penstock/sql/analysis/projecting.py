"""The SELECT list: stars, names of columns, and which columns are the key."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.logical import JOIN_KEY, SourceRead
from penstock.sql.analysis.scope import SourceScope
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import SYSTEM_COLUMNS, WINDOW_BOUNDS
from penstock.sql.language.expressions import ColumnName, Expression, FieldOf, Star
from penstock.sql.language.place import Place
from penstock.sql.language.queries import Select
from penstock.sql.types.kinds import StructOf


@dataclass(frozen=True, slots=True)
class Item:
    """An expression of the SELECT list under the name that it gets."""

    name: str
    expression: Expression
    at: Place | None = None


@dataclass(slots=True)
class _Namer:
    """Names for what has none: `KSQL_COL_0`, and `F_1` where `F` is taken by a field before."""

    taken: set[str]
    number: int = 0
    fields: dict[str, int] = field(default_factory=dict)

    def generated(self) -> str:
        while (name := f"KSQL_COL_{self.number}") in self.taken:
            self.number += 1
        self.taken.add(name)
        return name

    def of_field(self, name: str) -> str:
        number = self.fields.get(name, 0)
        made = name if number == 0 and name not in self.taken else f"{name}_{number or 1}"
        self.fields[name] = (number or (0 if made == name else 1)) + 1
        self.taken.add(made)
        return made


def items_of(
    select: Select,
    scope: SourceScope,
    checker: TypeChecker,
    *,
    is_persistent: bool,
    partition_by: Sequence[Expression],
) -> list[Item]:
    """The SELECT list with stars spread out and a name for each item; columns are resolved."""
    aliases = {item.alias for item in select.items if not isinstance(item, Star) and item.alias}
    known = {column.name for source in scope.sources for column in source.relation.columns.all}
    namer = _Namer(aliases | known)
    items: list[Item] = []
    for item in select.items:
        if isinstance(item, Star):
            items += _spread(item, scope, checker, namer, partition_by, is_persistent)
            continue
        resolved = scope.resolved(item.value, "SELECT")
        name = item.alias or _own_name(item.value, resolved, scope, namer)
        _check_alias(item.alias, resolved, scope, is_persistent, item.value)
        items.append(Item(name, resolved, getattr(item.value, "at", None)))
    _check_unique(items, is_persistent)
    return items


def _own_name(written: Expression, resolved: Expression, scope: SourceScope, namer: _Namer) -> str:
    if isinstance(written, ColumnName) and isinstance(resolved, ColumnName):
        return _column_name(resolved.name, scope)
    if isinstance(written, FieldOf):
        return namer.of_field(written.name)
    return namer.generated()


def _column_name(internal: str, scope: SourceScope) -> str:
    """A column's own name; with its source's alias before it where another source has it too."""
    owner = scope.owner(internal)
    if owner is None:
        return internal
    name = internal.removeprefix(owner.prefix)
    others = [s for s in scope.sources if s.prefix + name in s.row()]
    return f"{owner.alias}_{name}" if len(others) > 1 else name


def _check_alias(
    alias: str | None,
    resolved: Expression,
    scope: SourceScope,
    is_persistent: bool,
    written: Expression,
) -> None:
    name = alias
    if alias is None and isinstance(resolved, ColumnName):
        name = _column_name(resolved.name, scope)
        if not is_persistent:
            return
    if name in SYSTEM_COLUMNS and (alias is not None or name not in WINDOW_BOUNDS):
        raise StatementRefused(
            f"`{name}` is a reserved column name. You cannot use it as a name for a column: give "
            "it another with AS.",
            place=getattr(written, "at", None),
        )


def _check_unique(items: Sequence[Item], is_persistent: bool) -> None:
    seen: set[str] = set()
    for item in items:
        if item.name in seen:
            raise StatementRefused(
                f"Duplicate columns found in the projection: `{item.name}`. Give one of them "
                "another name with AS.",
                place=item.at,
            )
        seen.add(item.name)


def _spread(
    star: Star,
    scope: SourceScope,
    checker: TypeChecker,
    namer: _Namer,
    partition_by: Sequence[Expression],
    is_persistent: bool,
) -> list[Item]:
    if star.record is not None:
        return _fields(star, scope, checker, namer)
    if star.source is not None:
        sources: Sequence[SourceRead] = [scope.source_of(star.source, star.at)]
    else:
        sources = scope.sources
    items: list[Item] = []
    if star.source is None:
        new_keys = [key for key in partition_by if not isinstance(key, ColumnName)]
        items += [Item(namer.generated(), key, star.at) for key in new_keys]
        if JOIN_KEY in scope.added:
            items.append(Item(JOIN_KEY, ColumnName(JOIN_KEY), star.at))
    for source in sources:
        items += _columns(source, star, is_alone=len(scope.sources) == 1, shows=not is_persistent)
    return items


def _columns(source: SourceRead, star: Star, *, is_alone: bool, shows: bool) -> list[Item]:
    keys = [column.name for column in source.relation.columns.keys]
    bounds = list(WINDOW_BOUNDS) if shows and source.relation.key_window is not None else []
    others = [c.name for c in source.relation.columns.all if c.role != "KEY"]
    return [
        Item(
            name if is_alone else f"{source.alias}_{name}",
            ColumnName(source.prefix + name),
            star.at,
        )
        for name in (*keys, *bounds, *others)
    ]


def _fields(star: Star, scope: SourceScope, checker: TypeChecker, namer: _Namer) -> list[Item]:
    assert star.record is not None
    record = scope.resolved(star.record, "SELECT")
    kind = checker.type_of(record, scope.row, "SELECT")
    if not isinstance(kind, StructOf):
        reason = f"Cannot resolve fields of non-struct type: {star.record} is {kind}"
        raise StatementRefused(reason, place=star.at)
    return [Item(namer.of_field(name), FieldOf(record, name), star.at) for name, _ in kind.fields]
