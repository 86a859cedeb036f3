"""Expressions taken apart and put together again."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from penstock.sql.language.expressions import ColumnName, Expression, FunctionCall, Lambda
from penstock.sql.language.words import UNITS

Change = Callable[[Any], Any]  # The node in its place; None: look into it.
# Their first argument may be a word such as DAYS, which is no column.
_TAKE_UNITS: Final = frozenset(
    {"DATEADD", "DATESUB", "TIMEADD", "TIMESUB", "TIMESTAMPADD", "TIMESTAMPSUB"}
)


def rewritten(node: Any, change: Change, bound: frozenset[str] = frozenset()) -> Any:
    """The expression with the nodes that `change` replaces; parameters of lambdas stay."""
    if isinstance(node, ColumnName) and node.source is None and node.name in bound:
        return node
    made = change(node)
    if made is not None:
        return made
    bound = bound | _words_of(node)
    if isinstance(node, tuple):
        return tuple(rewritten(part, change, bound) for part in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    parts = {
        field.name: getattr(node, field.name)
        for field in fields(node)
        if field.name not in ("at", "type", "parameters")
    }
    changed = {name: rewritten(part, change, bound) for name, part in parts.items()}
    if all(changed[name] is part for name, part in parts.items()):
        return node
    return replace(node, **changed)


def nodes(node: Any, bound: frozenset[str] = frozenset()) -> Iterator[Any]:
    """All nodes of an expression, the outermost first; parameters of lambdas are left out."""
    if isinstance(node, tuple):
        for part in node:
            yield from nodes(part, bound)
        return
    if not is_dataclass(node) or isinstance(node, type):
        return
    if isinstance(node, ColumnName) and node.source is None and node.name in bound:
        return
    yield node
    bound = bound | _words_of(node)
    for field in fields(node):
        if field.name not in ("at", "type", "parameters"):
            yield from nodes(getattr(node, field.name), bound)


def _words_of(node: Any) -> frozenset[str]:
    """The words inside a node that look like columns and are none."""
    if isinstance(node, Lambda):
        return frozenset(node.parameters)
    if isinstance(node, FunctionCall) and node.function in _TAKE_UNITS:
        first = node.arguments[0] if node.arguments else None
        if isinstance(first, ColumnName) and first.name.removesuffix("S") in UNITS:
            return frozenset({first.name})
    return frozenset()


def columns_of(expression: Any) -> list[ColumnName]:
    """The columns that an expression reads."""
    return [node for node in nodes(expression) if isinstance(node, ColumnName)]


def calls_of(expression: Any) -> list[FunctionCall]:
    """The functions that an expression calls, the outermost first."""
    return [node for node in nodes(expression) if isinstance(node, FunctionCall)]


def conjuncts(condition: Expression) -> list[Expression]:
    """The parts of a condition that AND joins."""
    if getattr(condition, "operator", None) != "AND":
        return [condition]
    return [*conjuncts(condition.left), *conjuncts(condition.right)]  # type: ignore[union-attr]
