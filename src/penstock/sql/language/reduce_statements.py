"""From rules of the grammar to statements: one method for each rule."""

from typing import Any

from lark import Token

from penstock.sql.language import expressions as x
from penstock.sql.language import queries as q
from penstock.sql.language import statements as s
from penstock.sql.language import types as t
from penstock.sql.language.place import Place, SqlSyntaxError
from penstock.sql.language.reduce_expressions import Word, given, optional, rule, text_of
from penstock.sql.language.reduce_queries import QueryBuilder


class StatementBuilder(QueryBuilder):
    """The rules of grammar.lark by name."""

    # Statements about streams, tables and what belongs to them

    @rule
    def replacing(self, _at: Place, *_words: str) -> bool:
        return True

    if_not_exists = if_exists = not_exists = delete_topic = from_beginning = replacing

    @rule
    def columns(self, _at: Place, *columns: s.ColumnElement) -> tuple[s.ColumnElement, ...]:
        return columns

    @rule
    def column_element(self, at: Place, name: str, kind: t.SqlType, role: Any) -> s.ColumnElement:
        word, header = role or ("", None)
        return s.ColumnElement(str(name), kind, word, header, at)  # type: ignore[arg-type]

    @rule
    def role(self, _at: Place, *words: str) -> tuple[str, str | None]:
        if words[0].upper() == "HEADER":
            return "HEADER", text_of(words[1])
        return " ".join(words).upper(), None

    @rule
    def added(self, at: Place, *parts: Any) -> s.ColumnElement:
        name, kind = parts[-2:]
        return s.ColumnElement(str(name), kind, at=at)

    @rule
    def with_(self, at: Place, *properties: Any) -> dict[str, x.Literal]:
        found: dict[str, x.Literal] = {}
        for name, value in given(properties):
            if name in found:
                raise SqlSyntaxError(f"the property {name} is given twice", place=at)
            found[name] = value
        return found

    @rule
    def property_(
        self, _at: Place, name: str, _equal: str, value: x.Literal
    ) -> tuple[str, x.Literal]:
        return (str(name) if isinstance(name, Word) else text_of(name)), value

    @rule
    def named(self, _at: Place, *names: str) -> tuple[str, ...]:
        return tuple(str(name) for name in names)

    @rule
    def create_source(self, at: Place, *parts: Any) -> s.CreateSource:
        replacing, read_only, kind, condition, name, columns, properties = parts
        return s.CreateSource(
            kind=kind.upper(),
            name=str(name),
            columns=columns or (),
            properties=properties or {},
            is_replacing=replacing is not None,
            is_read_only=read_only is not None,
            if_not_exists=condition is not None,
            at=at,
        )

    @rule
    def create_as(self, at: Place, *parts: Any) -> s.CreateAs:
        replacing, kind, condition, name, properties, query = parts
        return s.CreateAs(
            kind=kind.upper(),
            name=str(name),
            query=query,
            properties=properties or {},
            is_replacing=replacing is not None,
            if_not_exists=condition is not None,
            at=at,
        )

    @rule
    def create_connector(self, at: Place, kind: str, _word: str, *parts: Any) -> s.CreateConnector:
        condition, name, properties = parts
        return s.CreateConnector(
            kind=kind.upper(),  # type: ignore[arg-type]
            name=str(name),
            properties=properties,
            if_not_exists=condition is not None,
            at=at,
        )

    @rule
    def create_type(
        self, at: Place, _word: str, condition: Any, name: str, kind: Any
    ) -> s.CreateType:
        return s.CreateType(name=str(name), type=kind, if_not_exists=condition is not None, at=at)

    @rule
    def drop(self, at: Place, kind: str, condition: Any, name: str, deletes: Any = None) -> s.Drop:
        return s.Drop(
            kind=kind.upper(),  # type: ignore[arg-type]
            name=str(name),
            if_exists=condition is not None,
            deletes_topic=deletes is not None,
            at=at,
        )

    @rule
    def add_columns(self, at: Place, kind: str, name: str, *columns: Any) -> s.AddColumns:
        return s.AddColumns(kind=kind.upper(), name=str(name), columns=columns, at=at)  # type: ignore[arg-type]

    @rule
    def insert_from(self, at: Place, name: str, properties: Any, query: q.Select) -> s.InsertFrom:
        return s.InsertFrom(target=str(name), query=query, properties=properties or {}, at=at)

    @rule
    def insert_row(self, at: Place, name: str, columns: Any, values: Any) -> s.InsertRow:
        return s.InsertRow(target=str(name), columns=columns or (), values=values, at=at)

    # Statements that ask and steer

    @rule
    def shown(self, _at: Place, *words: str) -> str:
        return " ".join(words).upper()

    @rule
    def show(self, at: Place, *parts: Any) -> s.Show:
        what, extended = parts[-2:]
        return s.Show(what=what, is_extended=extended is not None, at=at)

    @rule
    def describe(self, at: Place, name: str, extended: Any) -> s.Describe:
        return s.Describe(kind="SOURCE", name=str(name), is_extended=extended is not None, at=at)

    @rule
    def describe_extended(self, at: Place, _extended: str, name: str) -> s.Describe:
        return s.Describe(kind="SOURCE", name=str(name), is_extended=True, at=at)

    @rule
    def describe_function(self, at: Place, _word: str, name: str) -> s.Describe:
        return s.Describe(kind="FUNCTION", name=str(name), at=at)

    @rule
    def describe_connector(self, at: Place, _word: str, name: str) -> s.Describe:
        return s.Describe(kind="CONNECTOR", name=str(name), at=at)

    @rule
    def all_tables(self, _at: Place, word: str) -> str:
        return word

    @rule
    def describe_streams(self, at: Place, _word: str, extended: Any) -> s.Describe:
        return s.Describe(kind="STREAMS", is_extended=extended is not None, at=at)

    @rule
    def describe_tables(self, at: Place, _word: str, extended: Any) -> s.Describe:
        return s.Describe(kind="TABLES", is_extended=extended is not None, at=at)

    @rule
    def explain(self, at: Place, statement: Any) -> s.Explain:
        return s.Explain(subject=statement, at=at)

    @rule
    def explain_query(self, at: Place, name: str) -> s.Explain:
        return s.Explain(subject=str(name), at=at)

    @rule
    def topic(self, _at: Place, name: str) -> str:
        """Of PRINT: topics differ by case, so a name without quotes keeps the one it has."""
        return name.as_written if isinstance(name, Word) else text_of(name)

    @rule
    def subject(self, _at: Place, name: str) -> str:
        return str(name) if isinstance(name, Word) else text_of(name)

    @rule
    def id(self, at: Place, number: str) -> int:
        if len(number) > 10:
            raise SqlSyntaxError("the id is too large", place=at)
        return int(number)

    @rule
    def every(self, at: Place, _word: str, count: str) -> int:
        if len(count) > 9 or int(count) == 0:
            raise SqlSyntaxError("the interval is a number above 0", place=at)
        return int(count)

    @rule
    def print_topic(
        self, at: Place, topic: str, beginning: Any, every: Any, limit: Any
    ) -> s.PrintTopic:
        return s.PrintTopic(
            topic=topic,
            is_from_beginning=beginning is not None,
            every=every or 1,
            limit=limit,
            at=at,
        )

    @rule
    def control(self, at: Place, action: str, query: str) -> s.Control:
        is_all = isinstance(query, Token)
        return s.Control(action=action.upper(), query=None if is_all else str(query), at=at)  # type: ignore[arg-type]

    @rule
    def set_property(self, at: Place, name: str, _equal: str, value: str) -> s.SetProperty:
        return s.SetProperty(name=text_of(name), value=text_of(value), at=at)

    @rule
    def unset_property(self, at: Place, name: str) -> s.SetProperty:
        return s.SetProperty(name=text_of(name), value=None, at=at)

    @rule
    def set_for_all(self, at: Place, name: str, _equal: str, value: str) -> s.SetProperty:
        return s.SetProperty(name=text_of(name), value=text_of(value), is_for_all=True, at=at)

    @rule
    def define(self, at: Place, name: str, _equal: str, value: str) -> s.SetVariable:
        return s.SetVariable(name=str(name), value=text_of(value), at=at)

    @rule
    def undefine(self, at: Place, name: str) -> s.SetVariable:
        return s.SetVariable(name=str(name), value=None, at=at)

    @rule
    def run_script(self, at: Place, path: str) -> s.RunScript:
        return s.RunScript(path=text_of(path), at=at)

    # Assertions

    @rule
    def assert_row(self, at: Place, name: str, columns: Any, values: Any) -> s.AssertRow:
        return s.AssertRow(target=str(name), columns=columns or (), values=values, at=at)

    @rule
    def assert_tombstone(self, at: Place, *parts: Any) -> s.AssertRow:
        _null, name, columns, _key, values = parts
        return s.AssertRow(
            target=str(name), columns=columns or (), values=values, is_tombstone=True, at=at
        )

    @rule
    def assert_source(
        self, at: Place, kind: str, name: str, columns: Any, properties: Any
    ) -> s.AssertSource:
        source = s.CreateSource(
            kind=kind.upper(),  # type: ignore[arg-type]
            name=str(name),
            columns=columns or (),
            properties=properties or {},
            at=at,
        )
        return s.AssertSource(source=source, at=at)

    @rule
    def assert_topic(self, at: Place, absent: Any, *parts: Any) -> s.AssertTopic:
        _topic, name, properties, timeout = parts
        return s.AssertTopic(
            topic=str(name),
            properties=properties or {},
            exists=absent is None,
            timeout=timeout,
            at=at,
        )

    @rule
    def assert_schema(self, at: Place, absent: Any, *parts: Any) -> s.AssertSchema:
        _schema, subject, number, timeout = parts
        return s.AssertSchema(
            subject=optional(subject),
            id=number,
            exists=absent is None,
            timeout=timeout,
            at=at,
        )
