"""Expressions to functions of columns; what Arrow does not do exactly as a row would is done by it.

Types are those of the compiler of rows, which stays the one that knows what an expression means.
Where there is no way in Arrow with the very same meaning, the compiled expression itself goes over
the rows of the batch, with nothing but the columns that it names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.analysis.checking import TypeChecker
from penstock.sql.analysis.walking import calls_of, columns_of
from penstock.sql.columns.calculation import calculated, negated
from penstock.sql.columns.cells import (
    ARROW,
    Cells,
    ColumnExpression,
    Evaluation,
    NotInColumns,
    RowFrame,
    all_of,
    cells_of,
    either,
    trues,
)
from penstock.sql.columns.functions import in_arrow
from penstock.sql.columns.likeness import likeness
from penstock.sql.expressions.compiled import CompiledExpression
from penstock.sql.expressions.construct import converted
from penstock.sql.expressions.schema import RowSchema
from penstock.sql.functions.overloads import choose
from penstock.sql.functions.patterns import Exact
from penstock.sql.functions.table import FunctionTable
from penstock.sql.language import expressions as x
from penstock.sql.types.kinds import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL_UNIT,
    STRING,
    WHOLE,
    DataType,
    DecimalOf,
)

_COMPARISONS: Final[Mapping[str, str]] = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_EXACT: Final = 1 << 53  # Whole numbers up to here are doubles too.
# Of one column that is made: a function may make a long text of a short one, even where a CASE does
# not take it. Rows behind are left.
_TEXT_MAX: Final = 64_000_000
# Where what a function gives follows from its arguments alone.
_PURE: Final = "penstock.sql.functions.scalars."
_WORLDLY: Final = "penstock.sql.functions.scalars.surroundings"


@dataclass(frozen=True, slots=True)
class ColumnCompiler:
    """Compiles expressions over the columns of one row."""

    checker: TypeChecker
    row: Mapping[str, DataType]

    def compile(self, expression: Any) -> ColumnExpression:
        """Any expression with a type that Arrow has; NotInColumns if there is no way."""
        compiled = self.checker.compiled(expression, self.row)
        try:
            return ColumnExpression(compiled.type, self._natively(expression, compiled))
        except NotInColumns:
            return ColumnExpression(compiled.type, self._row_by_row(expression, compiled))

    def compile_as(self, expression: Any, kind: DataType | None) -> ColumnExpression:
        """The expression as a wider number."""
        return ColumnExpression(kind, self._as(expression, kind))

    def _natively(self, expression: Any, compiled: CompiledExpression) -> Evaluation:
        if compiled.is_literal:
            return _constant(compiled)
        match expression:
            case x.ColumnName():
                return self._column(expression)
            case x.Binary():
                return self._binary(expression, compiled)
            case x.Unary():
                return self._unary(expression)
            case x.FunctionCall():
                return self._call(expression)
            case x.Case():
                return self._case(expression, compiled)
            case x.Cast():
                return self._cast(expression, compiled)
        return self._predicate(expression)

    def _predicate(self, expression: Any) -> Evaluation:
        match expression:
            case x.IsNull():
                inner = self.compile(expression.value)
                name = "is_valid" if expression.is_negated else "is_null"
                return _each(lambda values: pc.call_function(name, [values]), inner.evaluate)
            case x.Between():
                return self._between(expression)
            case x.InList():
                return self._in_list(expression)
            case x.Like() if isinstance(expression.pattern, x.Literal):
                holds = likeness(expression.pattern.value, expression.escape)
                inner = self._typed(expression.value, STRING)
                if expression.is_negated:
                    return _each(lambda values: pc.invert(holds(values)), inner.evaluate)
                return _each(holds, inner.evaluate)
        raise NotInColumns

    # Names and types

    def _column(self, expression: x.ColumnName) -> Evaluation:
        key = RowSchema(self.row).key_of(expression.name, expression.source)
        if self.row[key] not in ARROW:
            raise NotInColumns
        return lambda frame: Cells(frame.columns[key])

    def _typed(self, expression: Any, kind: DataType) -> ColumnExpression:
        """The expression, if it has exactly this type."""
        found = self.compile(expression)
        if found.type != kind:
            raise NotInColumns
        return found

    def _as(self, expression: Any, kind: DataType | None) -> Evaluation:
        """The expression as a wider number, or as the type that a literal stands for."""
        compiled = self.checker.compiled(expression, self.row)
        if compiled.is_literal and kind in ARROW:
            return _constant(converted(compiled, kind), kind)
        if compiled.type == kind:
            return self.compile(expression).evaluate
        inner = self.compile(expression).evaluate
        if compiled.type == INTEGER and kind in WHOLE:
            return inner
        if compiled.type in WHOLE and kind == DOUBLE:
            return _each(lambda values: pc.cast(values, pa.float64(), safe=False), inner)
        raise NotInColumns

    def _cast(self, expression: x.Cast, compiled: CompiledExpression) -> Evaluation:
        value = self.checker.compiled(expression.value, self.row)
        if value.is_literal:
            raise NotInColumns
        if value.type in WHOLE and compiled.type == STRING:
            inner = self.compile(expression.value).evaluate
            return _each(lambda values: pc.cast(values, pa.string()), inner)
        return self._as(expression.value, compiled.type)

    # Operators

    def _unary(self, expression: x.Unary) -> Evaluation:
        if expression.operator == "+":
            return self.compile(expression.operand).evaluate
        if expression.operator == "NOT":
            return _each(pc.invert, self._truth(expression.operand))
        inner = self.compile(expression.operand)
        if inner.type not in WHOLE and inner.type != DOUBLE:
            raise NotInColumns
        return _each(negated(inner.type), inner.evaluate)

    def _binary(self, expression: x.Binary, compiled: CompiledExpression) -> Evaluation:
        sign = expression.operator
        if sign in ("AND", "OR"):
            return _logic(sign, self._truth(expression.left), self._truth(expression.right))
        if compiled.type == BOOLEAN:
            return self._comparison(expression)
        if compiled.type not in WHOLE and compiled.type not in (DOUBLE, STRING):
            raise NotInColumns
        left = self._as(expression.left, compiled.type)
        right = self._as(expression.right, compiled.type)
        return calculated(sign, compiled.type, left, right)

    def _truth(self, expression: Any) -> Evaluation:
        return self._as(expression, BOOLEAN)

    def _comparison(self, expression: x.Binary) -> Evaluation:
        kind = self._comparable(expression.left, expression.right)
        left, right = self._as(expression.left, kind), self._as(expression.right, kind)
        sign = expression.operator
        if sign in _COMPARISONS:
            return _compared(_COMPARISONS[sign], left, right)
        return _distinct(left, right, is_negated=sign == "IS NOT DISTINCT FROM")

    def _comparable(self, *expressions: Any) -> DataType:
        """The type in which Arrow compares as Python compares the values themselves."""
        compiled = [self.checker.compiled(one, self.row) for one in expressions]
        kinds = {one.type for one in compiled}
        if len(kinds) == 1 and (kind := compiled[0].type) in (BOOLEAN, DOUBLE, STRING):
            assert kind is not None
            return kind
        if kinds <= WHOLE:
            return max(WHOLE & kinds, key=lambda one: one != INTEGER)
        if DOUBLE in kinds and all(map(_is_double, compiled)):
            return DOUBLE
        raise NotInColumns

    # Predicates

    def _between(self, expression: x.Between) -> Evaluation:
        low = x.Binary(">=", expression.value, expression.low, expression.at)
        high = x.Binary("<=", expression.value, expression.high, expression.at)
        both = _logic("AND", self._comparison(low), self._comparison(high))
        return _each(pc.invert, both) if expression.is_negated else both

    def _in_list(self, expression: x.InList) -> Evaluation:
        kind = self._comparable(expression.value, *expression.choices)
        value = self._as(expression.value, kind)
        choices = [self._as(choice, kind) for choice in expression.choices]
        among = _compared("equal", value, choices[0])
        for choice in choices[1:]:
            among = _logic("OR", among, _compared("equal", value, choice))
        return _each(pc.invert, among) if expression.is_negated else among

    def _case(self, expression: x.Case, compiled: CompiledExpression) -> Evaluation:
        if compiled.type not in ARROW:
            raise NotInColumns
        branches = [
            (self._when(expression, when), self._as(then, compiled.type))
            for when, then in expression.branches
        ]
        nothing = x.Literal(None)
        otherwise = self._as(expression.otherwise or nothing, compiled.type)
        return _first_true(branches, otherwise, ARROW[compiled.type])

    def _when(self, expression: x.Case, when: Any) -> Evaluation:
        if expression.operand is None:
            return self._truth(when)
        return self._comparison(x.Binary("=", expression.operand, when, expression.at))

    # Functions

    def _call(self, call: x.FunctionCall) -> Evaluation:
        if any(isinstance(one, x.Lambda | x.Star) for one in call.arguments):
            raise NotInColumns
        overloads = self.checker.functions.scalar(call.function).overloads
        if any(Exact(INTERVAL_UNIT) in one.signature.parameters for one in overloads):
            raise NotInColumns
        written: tuple[Any, ...] = call.arguments
        arguments = [self.checker.compiled(one, self.row) for one in written]
        overload, filled = choose(call.function, overloads, [one.type for one in arguments])
        patterns = overload.signature.patterns_for(len(arguments)) or ()
        function = in_arrow(overload.call, arguments)
        evaluations = [
            self._as(one, filled.type_of(pattern))
            for one, pattern in zip(written, patterns, strict=True)
        ]

        def evaluate(frame: RowFrame) -> Cells:
            parts = [one(frame) for one in evaluations]
            return Cells(function([part.array(frame.size) for part in parts]), all_of(parts))

        return evaluate

    def _row_by_row(self, expression: Any, compiled: CompiledExpression) -> Evaluation:
        """The compiled expression itself over each row: anything that fails is in doubt."""
        kind = compiled.type
        if kind not in ARROW or not _is_pure(expression, self.checker.functions):
            raise NotInColumns
        schema = RowSchema(self.row)
        names = sorted({schema.key_of(one.name, one.source) for one in _columns(expression)})
        if any(self.row[name] not in ARROW for name in names):
            raise NotInColumns
        return _over_rows(compiled, names, kind)


def _columns(expression: Any) -> Sequence[x.ColumnName]:
    return columns_of(expression)


def _is_pure(expression: Any, functions: FunctionTable) -> bool:
    """Whether calls may be made twice: they are all our own, and none is of time or chance."""
    modules = [
        overload.call.__module__
        for call in calls_of(expression)
        for overload in functions.scalar(call.function).overloads
    ]
    return all(one.startswith(_PURE) and one != _WORLDLY for one in modules)


def _is_double(compiled: CompiledExpression) -> bool:
    """Whether a number compares as the double that is nearest to it."""
    if compiled.type in (DOUBLE, INTEGER):
        return True
    if not compiled.is_literal:
        return False
    is_small = isinstance(compiled.literal, int) and abs(compiled.literal) <= _EXACT
    return isinstance(compiled.type, DecimalOf) or is_small


def _constant(compiled: CompiledExpression, kind: DataType | None = None) -> Evaluation:
    kind = kind or compiled.type
    if kind not in ARROW or isinstance(compiled.literal, Decimal):
        raise NotInColumns
    cells = Cells(pa.scalar(compiled.literal, ARROW[kind]))
    return lambda frame: cells


def _over_rows(
    compiled: CompiledExpression, names: Sequence[str], kind: DataType | None
) -> Evaluation:
    def evaluate(frame: RowFrame) -> Cells:
        columns = [frame.columns[name].to_pylist() for name in names]
        values, failed, room = [], [], _TEXT_MAX
        for at, row in enumerate(zip(*columns, strict=True) if names else [()] * frame.size):
            value = None
            try:
                if room < 0:
                    raise NotInColumns
                value = compiled.evaluate(dict(zip(names, row, strict=True)))
            except Exception:  # noqa: BLE001  (the row's own way says what fails)
                failed.append(at)
            values.append(value)
            room -= len(value) if isinstance(value, str | bytes) else 0
        doubts = None
        if failed:
            doubts = np.zeros(frame.size, bool)
            doubts[failed] = True
        return cells_of(values, kind, doubts)

    return evaluate


def _each(function: Callable[[Any], Any], inner: Evaluation) -> Evaluation:
    def evaluate(frame: RowFrame) -> Cells:
        cells = inner(frame)
        return Cells(function(cells.values), cells.doubts)

    return evaluate


def _compared(name: str, left: Evaluation, right: Evaluation) -> Evaluation:
    """As in ksqlDB a comparison with NULL is false."""

    def evaluate(frame: RowFrame) -> Cells:
        one, two = left(frame), right(frame)
        found = pc.call_function(name, [one.values, two.values])
        return Cells(pc.fill_null(found, False), either(one.doubts, two.doubts))

    return evaluate


def _distinct(left: Evaluation, right: Evaluation, *, is_negated: bool) -> Evaluation:
    def evaluate(frame: RowFrame) -> Cells:
        one, two = left(frame), right(frame)
        equal = pc.fill_null(pc.equal(one.values, two.values), False)
        both_null = pc.and_(pc.is_null(one.values), pc.is_null(two.values))
        same = pc.or_(equal, both_null)
        return Cells(same if is_negated else pc.invert(same), either(one.doubts, two.doubts))

    return evaluate


def _logic(word: str, left: Evaluation, right: Evaluation) -> Evaluation:
    """Where the first operand decides, nobody looks at the other."""
    combine, is_or = (pc.or_kleene, True) if word == "OR" else (pc.and_kleene, False)

    def evaluate(frame: RowFrame) -> Cells:
        one, two = left(frame), right(frame)
        doubts = two.doubts
        if doubts is not None:
            decided = one.values if is_or else pc.invert(one.values)
            doubts = doubts & ~trues(decided, frame.size)
        return Cells(combine(one.values, two.values), either(one.doubts, doubts))

    return evaluate


def _first_true(
    branches: Sequence[tuple[Evaluation, Evaluation]], otherwise: Evaluation, arrow: pa.DataType
) -> Evaluation:
    """A branch is in doubt only where it is taken."""

    def evaluate(frame: RowFrame) -> Cells:
        left, doubts, made = np.ones(frame.size, bool), None, []
        for condition, result in branches:
            asked, found = condition(frame), result(frame)
            taken = left & trues(asked.values, frame.size)
            doubts = either(doubts, None if asked.doubts is None else asked.doubts & left)
            doubts = either(doubts, None if found.doubts is None else found.doubts & taken)
            made.append((taken, found))
            left = left & ~taken
        last = otherwise(frame)
        doubts = either(doubts, None if last.doubts is None else last.doubts & left)
        values = last.array(frame.size)
        for taken, found in reversed(made):
            values = pc.if_else(pa.array(taken), found.values, values)
        return Cells(pc.cast(values, arrow), doubts)

    return evaluate
