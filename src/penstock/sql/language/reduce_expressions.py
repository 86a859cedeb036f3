"""From rules of the grammar to expressions: one method for each rule, called as the parser reduces.

What a method gets are the values of its parts and the words that tell something; signs and words
that every use of the rule has are left out. A part that may be missing is None.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from typing import Any, Final

from lark import Token

from penstock.sql.language import expressions as x
from penstock.sql.language import types as t
from penstock.sql.language.names import name_of
from penstock.sql.language.place import Place, SqlSyntaxError
from penstock.sql.language.words import words_of

_SILENT: Final = words_of(
    """
    ADD ADVANCE ALL ALTER ARROW AS ASSERT ASSIGN BETWEEN BY CASE CAST COLUMN COMMA CREATE
    DEFINE DESCRIBE DISTINCT DOT DROP ELSE END ESCAPE EXPLAIN FROM GRACE GROUP HAVING HOPPING
    ID IN INSERT INTO IS JOIN LAMBDA LIKE LIMIT LPAR LSQB ON OUTER PARTITION PERIOD PRINT
    RETENTION RPAR RSQB RUN SCRIPT SELECT SET SIZE SUBJECT SYSTEM THEN TIMEOUT TUMBLING
    UNDEFINE UNSET VALUES WHEN WHERE WINDOW WITH WITHIN
    """
)
_KEPT_BY: Final = {"shown": {"ALL"}, "control": {"ALL"}, "name": set(_SILENT), "soft": set(_SILENT)}
_LONG_MAX: Final = 1 << 63


def rule(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method out of one that is given a rule's parts and its place."""
    silent = _SILENT - _KEPT_BY.get(method.__name__, set())

    @wraps(method)
    def build(self: object, parts: list[Any]) -> Any:
        told = [p for p in parts if not (isinstance(p, Token) and p.type in silent)]
        return method(self, _place(parts), *told)

    return build


def _place(parts: list[Any]) -> Place | None:
    for part in parts:
        if isinstance(part, Token):
            return Place(part.line or 1, part.column or 1)
        if (found := getattr(part, "at", None)) is not None:
            return found  # type: ignore[no-any-return]
    return None


def text_of(token: str) -> str:
    return token[1:-1].replace("''", "'")


class Word(str):
    """A name, where it stands, and how it is written there without quotes."""

    __slots__ = ("as_written", "at")
    at: Place | None
    as_written: str


def _word(text: str, at: Place | None, as_written: str | None = None) -> Word:
    made = Word(text)
    made.at = at
    made.as_written = text if as_written is None else as_written
    return made


def given(parts: Any) -> tuple[Any, ...]:
    return tuple(part for part in parts if part is not None)


def optional(name: str | None) -> str | None:
    return None if name is None else str(name)


class ExpressionBuilder:
    """The rules for names, literals, expressions and types."""

    # Names and literals

    @rule
    def name(self, at: Place, word: str) -> Word:
        name = name_of(word)
        return _word(name, at, word if word.upper() == name else name)

    alias = name

    @rule
    def soft(self, _at: Place, word: str) -> str:
        return word

    soft_alias = soft

    @rule
    def null(self, at: Place, *_: Any) -> x.Literal:
        return x.Literal(None, at)

    @rule
    def true(self, at: Place, *_: Any) -> x.Literal:
        return x.Literal(True, at)

    @rule
    def false(self, at: Place, *_: Any) -> x.Literal:
        return x.Literal(False, at)

    @rule
    def integer(self, at: Place, text: str) -> x.Literal:
        if len(text) > 40 or int(text) >= _LONG_MAX:
            raise SqlSyntaxError("the number is too large for a BIGINT", place=at)
        return x.Literal(int(text), at)

    @rule
    def decimal(self, at: Place, text: str) -> x.Literal:
        if len(text) > 100:
            raise SqlSyntaxError("the number has too many digits", place=at)
        return x.Literal(Decimal(text), at)

    @rule
    def double(self, at: Place, text: str) -> x.Literal:
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise SqlSyntaxError("the number is too large for a DOUBLE", place=at)
        return x.Literal(value, at)

    @rule
    def string(self, at: Place, text: str) -> x.Literal:
        return x.Literal(text_of(text), at)

    @rule
    def negative(self, at: Place, _minus: str, literal: x.Literal) -> x.Literal:
        if isinstance(literal.value, bool) or not isinstance(literal.value, int | float | Decimal):
            raise SqlSyntaxError("only a number can be negative", place=at)
        return x.Literal(-literal.value, at)

    # Expressions

    @rule
    def binary(self, at: Place, left: Any, operator: str, right: Any) -> x.Binary:
        word = "<>" if operator == "!=" else operator.upper()
        return x.Binary(word, left, right, at)

    @rule
    def unary(self, at: Place, operator: str, operand: Any) -> x.Unary:
        return x.Unary(operator.upper(), operand, at)

    @rule
    def is_distinct(self, at: Place, left: Any, right: Any) -> x.Binary:
        return x.Binary("IS DISTINCT FROM", left, right, at)

    @rule
    def is_not_distinct(self, at: Place, left: Any, _not: str, right: Any) -> x.Binary:
        return x.Binary("IS NOT DISTINCT FROM", left, right, at)

    @rule
    def is_null(self, at: Place, value: Any, negation: str | None, _null: str) -> x.IsNull:
        return x.IsNull(value, negation is not None, at)

    @rule
    def between(
        self, at: Place, value: Any, negation: Any, low: Any, _and: str, high: Any
    ) -> x.Between:
        return x.Between(value, low, high, negation is not None, at)

    @rule
    def in_list(self, at: Place, value: Any, negation: Any, choices: Any) -> x.InList:
        return x.InList(value, choices, negation is not None, at)

    @rule
    def like(
        self, at: Place, value: Any, negation: Any, pattern: Any, escape: str | None
    ) -> x.Like:
        return x.Like(value, pattern, escape, negation is not None, at)

    @rule
    def escape(self, at: Place, text: str) -> str:
        character = text_of(text)
        if len(character) != 1:
            raise SqlSyntaxError("ESCAPE takes one character", place=at)
        return character

    @rule
    def column(self, at: Place, name: str) -> x.ColumnName:
        return x.ColumnName(str(name), None, at)

    @rule
    def source_column(self, at: Place, source: str, name: str) -> x.ColumnName:
        return x.ColumnName(str(name), str(source), at)

    @rule
    def field_of(self, at: Place, record: Any, name: str) -> x.FieldOf:
        return x.FieldOf(record, str(name), at)

    @rule
    def item_of(self, at: Place, container: Any, index: Any) -> x.ItemOf:
        return x.ItemOf(container, index, at)

    @rule
    def brackets(self, _at: Place, inner: Any) -> Any:
        return inner

    @rule
    def arguments(self, _at: Place, *arguments: Any) -> tuple[Any, ...]:
        return arguments

    values = arguments

    @rule
    def call(self, at: Place, name: str, arguments: Any) -> x.FunctionCall:
        return x.FunctionCall(str(name), arguments or (), at)

    @rule
    def call_star(self, at: Place, name: str, _star: str) -> x.FunctionCall:
        return x.FunctionCall(str(name), (x.Star(),), at)

    @rule
    def when(self, _at: Place, condition: Any, value: Any) -> tuple[Any, Any]:
        return condition, value

    @rule
    def case(self, at: Place, *parts: Any) -> x.Case:
        return x.Case(None, tuple(parts[:-1]), parts[-1], at)

    @rule
    def case_of(self, at: Place, operand: Any, *parts: Any) -> x.Case:
        return x.Case(operand, tuple(parts[:-1]), parts[-1], at)

    @rule
    def cast(self, at: Place, value: Any, kind: t.SqlType) -> x.Cast:
        return x.Cast(value, kind, at)

    @rule
    def new_array(self, at: Place, _word: str, items: Any) -> x.NewArray:
        return x.NewArray(items or (), at)

    @rule
    def new_map(self, at: Place, _word: str, *entries: Any) -> x.NewMap:
        return x.NewMap(given(entries), at)

    @rule
    def new_struct(self, at: Place, _word: str, *members: Any) -> x.NewStruct:
        return x.NewStruct(given(members), at)

    entry = when

    @rule
    def member(self, _at: Place, name: str, value: Any) -> tuple[str, Any]:
        return str(name), value

    @rule
    def lambda_(self, at: Place, parameter: Any, body: Any) -> x.Lambda:
        if not isinstance(parameter, x.ColumnName) or parameter.source is not None:
            raise SqlSyntaxError("before => stand the names of the lambda's parameters", place=at)
        return x.Lambda((parameter.name,), body, at)

    @rule
    def lambda_of_many(self, at: Place, *parts: Any) -> x.Lambda:
        return x.Lambda(tuple(str(name) for name in parts[:-1]), parts[-1], at)

    # Types

    @rule
    def array_type(self, _at: Place, _word: str, _less: str, item: Any, _more: str) -> t.ArrayType:
        return t.ArrayType(item)

    @rule
    def map_type(
        self, _at: Place, _word: str, _less: str, key: Any, value: Any, _more: str
    ) -> t.MapType:
        return t.MapType(key, value)

    @rule
    def struct_type(self, _at: Place, _word: str, _less: str, *parts: Any) -> t.StructType:
        return t.StructType(given(parts[:-1]))

    @rule
    def empty_struct_type(self, _at: Place, *_parts: Any) -> t.StructType:
        return t.StructType(())

    @rule
    def named_type(self, _at: Place, name: str, *parameters: Any) -> t.NamedType:
        return t.NamedType(str(name), given(parameters))

    @rule
    def type_field(self, _at: Place, name: str, kind: t.SqlType) -> tuple[str, t.SqlType]:
        return str(name), kind

    @rule
    def parameter(self, at: Place, value: str) -> int | str:
        if isinstance(value, Word):
            return str(value)
        if len(value) > 9:
            raise SqlSyntaxError("the number is too large", place=at)
        return int(value)
