"""Statements as frozen values. `str` writes one as text, without the semicolon at its end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from penstock.sql.language.expressions import Expression, Literal
from penstock.sql.language.names import quoted, quoted_string
from penstock.sql.language.place import Place
from penstock.sql.language.queries import Duration, Select
from penstock.sql.language.types import SqlType

Kind: TypeAlias = OneOf["STREAM", "TABLE"]
Properties: TypeAlias = Mapping[str, Literal]  # By name in upper case, as they were given.


@dataclass(frozen=True, slots=True)
class ColumnElement:
    """A column of CREATE. The role is empty for a column of the value."""

    name: str
    type: SqlType
    role: OneOf["", "KEY", "PRIMARY KEY", "HEADERS", "HEADER"] = ""
    header: str | None = None  # The key of the one header, for the role HEADER.
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        role = self.role
        if role == "HEADER":
            role = f"HEADER({quoted_string(self.header or '')})"  # type: ignore[assignment]
        return f"{quoted(self.name)} {self.type}" + (f" {role}" if role else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSource:
    """CREATE STREAM or TABLE over a topic; without columns the schema says them."""

    kind: Kind
    name: str
    columns: tuple[ColumnElement, ...] = ()
    properties: Properties = field(default_factory=dict)
    is_replacing: bool = False
    is_read_only: bool = False  # CREATE SOURCE
    if_not_exists: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        columns = f" ({', '.join(str(c) for c in self.columns)})" if self.columns else ""
        source = "SOURCE " if self.is_read_only else ""
        head = _created(self.is_replacing, f"{source}{self.kind}", self.if_not_exists, self.name)
        return f"{head}{columns}{_with(self.properties)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAs:
    """CREATE STREAM or TABLE ... AS SELECT: a query that goes on for ever."""

    kind: Kind
    name: str
    query: Select
    properties: Properties = field(default_factory=dict)
    is_replacing: bool = False
    if_not_exists: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        head = _created(self.is_replacing, self.kind, self.if_not_exists, self.name)
        return f"{head}{_with(self.properties)} AS\n{self.query}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConnector:
    """CREATE SOURCE or SINK CONNECTOR."""

    kind: OneOf["SOURCE", "SINK"]
    name: str
    properties: Properties
    if_not_exists: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        head = _created(False, f"{self.kind} CONNECTOR", self.if_not_exists, self.name)
        return f"{head}{_with(self.properties)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateType:
    """A name for a type."""

    name: str
    type: SqlType
    if_not_exists: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{_created(False, 'TYPE', self.if_not_exists, self.name)} AS {self.type}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A stream, a table, a connector or a type."""

    kind: OneOf["STREAM", "TABLE", "CONNECTOR", "TYPE"]
    name: str
    if_exists: bool = False
    deletes_topic: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        condition = "IF EXISTS " if self.if_exists else ""
        return f"DROP {self.kind} {condition}{quoted(self.name)}" + (
            " DELETE TOPIC" if self.deletes_topic else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumns:
    """ALTER STREAM or TABLE: columns can only be added."""

    kind: Kind
    name: str
    columns: tuple[ColumnElement, ...]
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        added = ", ".join(f"ADD COLUMN {column}" for column in self.columns)
        return f"ALTER {self.kind} {quoted(self.name)} {added}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertFrom:
    """INSERT INTO ... SELECT: one more query into a stream."""

    target: str
    query: Select
    properties: Properties = field(default_factory=dict)
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"INSERT INTO {quoted(self.target)}{_with(self.properties)}\n{self.query}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertRow:
    """INSERT INTO ... VALUES: one record. Without columns: all of them, in order."""

    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"INSERT INTO {_row(self.target, self.columns, self.values)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """SHOW or LIST of all things of a kind."""

    what: OneOf[
        "PROPERTIES", "TOPICS", "ALL TOPICS", "STREAMS", "TABLES", "FUNCTIONS", "CONNECTORS",
        "SOURCE CONNECTORS", "SINK CONNECTORS", "CONNECTOR PLUGINS", "TYPES", "VARIABLES",
        "QUERIES",
    ]  # fmt: skip
    is_extended: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"SHOW {self.what}" + (" EXTENDED" if self.is_extended else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """One thing, or all streams or tables (then `name` is None)."""

    kind: OneOf["SOURCE", "FUNCTION", "CONNECTOR", "STREAMS", "TABLES"]
    name: str | None = None
    is_extended: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        words = ["DESCRIBE"]
        words += [] if self.kind == "SOURCE" else [self.kind]
        words += [] if self.name is None else [quoted(self.name)]
        words += ["EXTENDED"] if self.is_extended else []
        return " ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """How a statement would run, or how a query with this id does."""

    subject: "Statement | str"
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        is_id = isinstance(self.subject, str)
        return f"EXPLAIN {quoted(str(self.subject)) if is_id else self.subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintTopic:
    """The records of a topic, guessing their formats. Topics keep their case."""

    topic: str
    is_from_beginning: bool = False
    every: int = 1
    limit: int | None = None
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        beginning = " FROM BEGINNING" if self.is_from_beginning else ""
        every = "" if self.every == 1 else f" INTERVAL {self.every}"
        limit = "" if self.limit is None else f" LIMIT {self.limit}"
        return f"PRINT {quoted_string(self.topic)}{beginning}{every}{limit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """TERMINATE, PAUSE or RESUME a query, or all of them (None)."""

    action: OneOf["TERMINATE", "PAUSE", "RESUME"]
    query: str | None
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.action} {'ALL' if self.query is None else quoted(self.query)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetProperty:
    """SET, UNSET (None) or, for all users, ALTER SYSTEM."""

    name: str
    value: str | None
    is_for_all: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.value is None:
            return f"UNSET {quoted_string(self.name)}"
        word = "ALTER SYSTEM" if self.is_for_all else "SET"
        return f"{word} {quoted_string(self.name)} = {quoted_string(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVariable:
    """DEFINE, or UNDEFINE (None)."""

    name: str
    value: str | None
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.value is None:
            return f"UNDEFINE {self.name}"
        return f"DEFINE {self.name} = {quoted_string(self.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScript:
    """The statements of a file."""

    path: str
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"RUN SCRIPT {quoted_string(self.path)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertRow:
    """A record that must have come out, in tests; a tombstone has a key alone."""

    target: str
    columns: tuple[str, ...]
    values: tuple[Expression, ...]
    is_tombstone: bool = False
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if not self.is_tombstone:
            return f"ASSERT VALUES {_row(self.target, self.columns, self.values)}"
        columns = f" ({', '.join(quoted(c) for c in self.columns)})" if self.columns else ""
        keys = ", ".join(str(value) for value in self.values)
        return f"ASSERT NULL VALUES {quoted(self.target)}{columns} KEY ({keys})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertSource:
    """A stream or table that must be there and look like this, in tests."""

    source: CreateSource
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return "ASSERT" + str(self.source).removeprefix("CREATE")


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertTopic:
    """A topic that must be there, or not, within a time."""

    topic: str
    properties: Properties = field(default_factory=dict)
    exists: bool = True
    timeout: Duration | None = None
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        condition = "" if self.exists else "NOT EXISTS "
        timeout = "" if self.timeout is None else f" TIMEOUT {self.timeout}"
        return f"ASSERT {condition}TOPIC {quoted(self.topic)}{_with(self.properties)}{timeout}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertSchema:
    """A schema that must be there, or not, within a time."""

    subject: str | None
    id: int | None
    exists: bool = True
    timeout: Duration | None = None
    at: Place | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        condition = "" if self.exists else "NOT EXISTS "
        subject = "" if self.subject is None else f" SUBJECT {quoted(self.subject)}"
        number = "" if self.id is None else f" ID {self.id}"
        timeout = "" if self.timeout is None else f" TIMEOUT {self.timeout}"
        return f"ASSERT {condition}SCHEMA{subject}{number}{timeout}"


Statement: TypeAlias = (
    Select | CreateSource | CreateAs | CreateConnector | CreateType | Drop | AddColumns | InsertFrom
    | InsertRow | Show | Describe | Explain | PrintTopic | Control | SetProperty | SetVariable
    | RunScript | AssertRow | AssertSource | AssertTopic | AssertSchema
)  # fmt: skip


def _created(is_replacing: bool, what: str, if_not_exists: bool, name: str) -> str:
    replacing = "OR REPLACE " if is_replacing else ""
    condition = "IF NOT EXISTS " if if_not_exists else ""
    return f"CREATE {replacing}{what} {condition}{quoted(name)}"


def _with(properties: Properties) -> str:
    if not properties:
        return ""
    return f" WITH ({', '.join(f'{_property(n)}={v}' for n, v in properties.items())})"


def _property(name: str) -> str:
    return quoted_string(name) if "." in name else quoted(name)


def _row(target: str, columns: tuple[str, ...], values: tuple[Expression, ...]) -> str:
    named = f" ({', '.join(quoted(c) for c in columns)})" if columns else ""
    return f"{quoted(target)}{named} VALUES ({', '.join(str(value) for value in values)})"
