"""INSERT INTO ... VALUES: constant expressions become the key and the value of one record."""

from dataclasses import dataclass
from typing import Any

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import PSEUDO_COLUMNS, ROWTIME, Relation
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language.expressions import Expression
from penstock.sql.language.place import Place
from penstock.sql.language.statements import AssertRow, InsertRow
from penstock.sql.types.conversions import converter, is_convertible
from penstock.sql.types.failures import RowFailure
from penstock.sql.types.kinds import BIGINT, DataType, shown
from penstock.sql.types.shared_type import Typed, number_type


@dataclass(frozen=True, slots=True)
class RowValues:
    """The values of a record by column; a time, if one was given."""

    relation: Relation
    values: dict[str, Any]
    time_ms: int | None

    @property
    def key(self) -> tuple[Any, ...] | None:
        """The columns of the key; None if there is no key."""
        found = tuple(self.values.get(c.name) for c in self.relation.columns.keys)
        return None if not found or all(one is None for one in found) else found


def analyse_insert_row(
    statement: InsertRow, catalog: Catalog, functions: FunctionTable
) -> RowValues:
    """The record to be written; StatementRefused where its target or its values do not fit."""
    relation = catalog.relation(statement.target, statement.at)
    if relation.is_read_only:
        reason = f"Cannot insert values into read-only {relation.kind.lower()}: {relation.name}"
        raise StatementRefused(reason, place=statement.at)
    if relation.key_window is not None:
        raise StatementRefused("Cannot insert values into windowed stream/table!",
                               place=statement.at)  # fmt: skip
    row = row_values(statement, relation, catalog, functions)
    if relation.kind == "TABLE" and None in (row.key or (None,)):
        names = ", ".join(column.name for column in relation.columns.keys)
        raise StatementRefused(
            f"Failed to insert values into '{relation.name}'. Value for primary key column(s) "
            f"{names} is required for tables",
            place=statement.at,
        )
    return row


def row_values(
    statement: InsertRow | AssertRow, relation: Relation, catalog: Catalog, functions: FunctionTable
) -> RowValues:
    """Values under their columns, in the types of the columns."""
    names = statement.columns or tuple(
        c.name for c in relation.columns.all if c.role in ("KEY", "VALUE")
    )
    if len(names) != len(statement.values):
        raise StatementRefused(
            f"Expected a value for each column. Expected Columns: {list(names)}. Got "
            f"{len(statement.values)} values.",
            place=statement.at,
        )
    if len(set(names)) < len(names):
        raise StatementRefused(f"A column is named twice: {', '.join(names)}", place=statement.at)
    checker = TypeChecker(functions, catalog.types)
    values = {
        name: _value(expression, _type(name, relation, statement.at), name, checker)
        for name, expression in zip(names, statement.values, strict=True)
    }
    return RowValues(relation, values, values.pop(ROWTIME, None))


def _type(name: str, relation: Relation, place: Place | None) -> DataType:
    if name == ROWTIME:
        return BIGINT
    if name in PSEUDO_COLUMNS:
        raise StatementRefused(f"Inserting into column {name} is not allowed.", place=place)
    found = relation.columns.find(name)
    if found is None:
        raise StatementRefused(f"Column name `{name}` does not exist.", place=place)
    if found.role in ("HEADER", "HEADERS"):
        raise StatementRefused(f"Cannot insert into HEADER columns: {name}", place=place)
    return found.type


def _value(expression: Expression, kind: DataType, name: str, checker: TypeChecker) -> Any:
    compiled = checker.compiled(expression, {})
    fits = is_convertible(compiled.type, kind) or _is_number_text(compiled.typed(), kind)
    if not fits:
        raise StatementRefused(
            f"Expected type {kind} for field `{name}` but got {shown(compiled.type)}({expression})",
            place=getattr(expression, "at", None),
        )
    try:
        value = compiled.evaluate({})
        convert = converter(compiled.type, kind)
        return value if convert is None else convert(value)
    except RowFailure as failure:
        raise StatementRefused(failure.reason, place=getattr(expression, "at", None)) from None


def _is_number_text(typed: Typed, kind: DataType) -> bool:
    """A string literal that is written like a number, or a moment, stands for one."""
    if typed.text is None:
        return False
    if str(kind) in ("DATE", "TIME", "TIMESTAMP"):
        return True
    return number_type(typed.text) is not None and is_convertible(number_type(typed.text), kind)
