"""CREATE STREAM and TABLE over a topic, ALTER and CREATE TYPE: from what is written to columns."""

from collections.abc import Iterable, Mapping, Sequence

from penstock.sql.analysis.properties import INFERRING, GivenProperties
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.catalog.relations import (
    SYSTEM_COLUMNS,
    Columns,
    DataFormat,
    Relation,
    RelationColumn,
    Role,
    TimeColumn,
)
from penstock.sql.language.place import Place
from penstock.sql.language.statements import ColumnElement, CreateSource, Kind
from penstock.sql.language.types import SqlType
from penstock.sql.types.kinds import (
    BIGINT,
    BYTES,
    DOUBLE,
    INTEGER,
    STRING,
    TIMESTAMP,
    ArrayOf,
    DataType,
    MapOf,
    StructOf,
    parts,
)
from penstock.sql.types.reading import UnknownType, data_type

HEADERS_TYPE = ArrayOf(StructOf((("KEY", STRING), ("VALUE", BYTES))))
_KAFKA_TYPES = (INTEGER, BIGINT, DOUBLE, STRING, BYTES)
_TIME_TYPES = (BIGINT, STRING, TIMESTAMP)
_ROLES: Mapping[str, Role] = {
    "": "VALUE",
    "KEY": "KEY",
    "PRIMARY KEY": "KEY",
    "HEADERS": "HEADERS",
    "HEADER": "HEADER",
}


def type_of(written: SqlType, catalog: Catalog, place: Place | None = None) -> DataType:
    """The type that is meant; StatementRefused if there is none of that name."""
    try:
        return data_type(written, catalog.types)
    except UnknownType as error:
        raise StatementRefused(str(error), place=place) from None


def relation_of(
    statement: CreateSource, catalog: Catalog, inferred: Sequence[RelationColumn] = ()
) -> Relation:
    """The stream or table that a CREATE describes.

    `inferred` are columns that a registry knows, for what the statement leaves out.
    """
    given = GivenProperties.of_source(statement.properties)
    topic = given.get("KAFKA_TOPIC")
    if topic is None:
        raise StatementRefused("Missing required property 'KAFKA_TOPIC' which has no default "
                               "value.", place=statement.at)  # fmt: skip
    columns = columns_of_elements(statement, catalog)
    columns = Columns.of([*columns.all, *_left_out(columns, inferred)])
    _check_columns(statement, columns)
    key_format = given.key_format(None, has_key=bool(columns.keys))
    value_format = given.value_format(_default_format(catalog))
    if not columns.values and value_format.name in INFERRING:
        raise StatementRefused(f"No columns supplied, and the schema registry has none for the "
                               f"topic {topic}.", place=statement.at)  # fmt: skip
    if not columns.all:
        raise StatementRefused("The statement does not define any columns.", place=statement.at)
    check_formats(key_format, value_format, columns)
    return Relation(
        kind=statement.kind,
        name=statement.name,
        columns=columns,
        topic=topic,
        key_format=key_format,
        value_format=value_format,
        key_window=given.window(),
        time=time_column(given, columns),
        partitions=given.get("PARTITIONS"),
        replicas=given.get("REPLICAS"),
        retention_ms=given.get("RETENTION_MS"),
        is_read_only=statement.is_read_only,
        statement=str(statement),
    )


def infers(statement: CreateSource) -> tuple[str | None, str | None]:
    """The formats of key and value whose columns a registry has to tell; None: none are missing."""
    given = GivenProperties.of_source(statement.properties)
    both = given.get("FORMAT")
    key, value = given.get("KEY_FORMAT") or both, given.get("VALUE_FORMAT") or both
    roles = {_ROLES[element.role] for element in statement.columns}
    asks_key = key is not None and key.upper() in INFERRING and "KEY" not in roles
    asks_value = value is not None and value.upper() in INFERRING and "VALUE" not in roles
    return key.upper() if asks_key else None, value.upper() if asks_value else None


def _left_out(columns: Columns, inferred: Sequence[RelationColumn]) -> Iterable[RelationColumn]:
    roles = {column.role for column in columns.all}
    return (column for column in inferred if column.role not in roles)


def _default_format(catalog: Catalog) -> DataFormat | None:
    name = catalog.properties.get("ksql.persistence.default.format.value")
    return None if name is None else DataFormat(name.upper())


def columns_of_elements(statement: CreateSource, catalog: Catalog) -> Columns:
    """The columns as they are written."""
    made = [_column(element, statement.kind, catalog) for element in statement.columns]
    return Columns.of(made)


def added_columns(
    elements: Iterable[ColumnElement], catalog: Catalog
) -> tuple[RelationColumn, ...]:
    """The columns of ALTER."""
    made = tuple(_column(element, "STREAM", catalog) for element in elements)
    for column in made:
        _check_name(column, None)
    return made


def _column(element: ColumnElement, kind: Kind, catalog: Catalog) -> RelationColumn:
    if element.role == "PRIMARY KEY" and kind == "STREAM":
        raise StatementRefused(
            f"Column `{element.name}` is a 'PRIMARY KEY' column: please use 'KEY' for streams.",
            place=element.at,
        )
    if element.role == "KEY" and kind == "TABLE":
        raise StatementRefused(
            f"Column `{element.name}` is a 'KEY' column: please use 'PRIMARY KEY' for tables.",
            place=element.at,
        )
    found = type_of(element.type, catalog, element.at)
    _check_header(element, found)
    return RelationColumn(element.name, found, _ROLES[element.role], element.header)


def _check_header(element: ColumnElement, found: DataType) -> None:
    if element.role == "HEADER" and found != BYTES:
        raise StatementRefused(
            f"Invalid type for HEADER('{element.header}') column: expected BYTES, got {found}",
            place=element.at,
        )
    if element.role == "HEADERS" and found != HEADERS_TYPE:
        raise StatementRefused(
            f"Invalid type for HEADERS column: expected {HEADERS_TYPE}, got {found}",
            place=element.at,
        )


def _check_columns(statement: CreateSource, columns: Columns) -> None:
    at = {element.name: element.at for element in statement.columns}
    seen: set[str] = set()
    for column in columns.all:
        _check_name(column, at.get(column.name))
        if column.name in seen:
            reason = f"Duplicate column names: {column.name}"
            raise StatementRefused(reason, place=at.get(column.name))
        seen.add(column.name)
    if statement.kind == "TABLE" and not columns.keys:
        raise StatementRefused(
            "Tables require a PRIMARY KEY. Please define the PRIMARY KEY.", place=statement.at
        )
    if statement.kind == "TABLE" and columns.headers:
        raise StatementRefused("Tables do not support header columns.", place=statement.at)
    if len([c for c in columns.all if c.role == "HEADERS"]) > 1 or (
        any(c.role == "HEADERS" for c in columns.all)
        and any(c.role == "HEADER" for c in columns.all)
    ):
        raise StatementRefused(
            "Schema already contains a HEADERS column: it has all headers, so there can be no other"
            " header column.", place=statement.at,
        )  # fmt: skip
    _check_keys(columns)


def _check_keys(columns: Columns) -> None:
    for column in columns.keys:
        if any(isinstance(part, MapOf) for part in parts(column.type)):
            raise StatementRefused(
                "Map keys, including types that contain maps, are not supported as they may lead "
                "to unexpected behavior due to inconsistent serialization. Key column name: "
                f"`{column.name}`. Column type: {column.type}."
            )


def _check_name(column: RelationColumn, place: Place | None) -> None:
    if column.name in SYSTEM_COLUMNS:
        raise StatementRefused(f"'{column.name}' is a reserved column name.", place=place)


def check_formats(key: DataFormat, value: DataFormat, columns: Columns) -> None:
    """Whether the formats can hold the columns."""
    _check_format("Key", key, columns.keys)
    _check_format("Value", value, columns.values)
    if value.name == "NONE" and columns.values:
        raise StatementRefused("The 'NONE' format can only be used when no columns are defined.")
    if not value.is_wrapped and value.name not in ("KAFKA", "NONE") and len(columns.values) > 1:
        raise StatementRefused("'WRAP_SINGLE_VALUE' is only valid for single-field value schemas")


def _check_format(part: str, chosen: DataFormat, columns: Sequence[RelationColumn]) -> None:
    if chosen.name == "KAFKA":
        if len(columns) > 1:
            names = ", ".join(str(column) for column in columns)
            raise StatementRefused(
                f"{part} format does not support schema.\nformat: KAFKA\nschema: [{names}]\n"
                "reason: The 'KAFKA' format only supports a single field."
            )
        _check_types(part, chosen, columns, lambda kind: kind in _KAFKA_TYPES)
    if chosen.name == "DELIMITED":
        nested = (ArrayOf, MapOf, StructOf)
        _check_types(part, chosen, columns, lambda kind: not isinstance(kind, nested))


def _check_types(
    part: str, chosen: DataFormat, columns: Sequence[RelationColumn], takes: object
) -> None:
    for column in columns:
        if not takes(column.type):  # type: ignore[operator]
            raise StatementRefused(
                f"{part} format does not support schema.\nformat: {chosen.name}\nschema: "
                f"[{column}]\nreason: The '{chosen.name}' format does not support type "
                f"'{column.type}', column: `{column.name}`"
            )


def time_column(given: GivenProperties, columns: Columns) -> TimeColumn | None:
    """The column of the property TIMESTAMP."""
    name, form = given.get("TIMESTAMP"), given.get("TIMESTAMP_FORMAT")
    if name is None:
        if form is not None:
            raise StatementRefused("'TIMESTAMP_FORMAT' is given without 'TIMESTAMP'.")
        return None
    wanted = _column_name(name)
    found = columns.find(wanted)
    if found is None:
        raise StatementRefused(
            f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{wanted}'"
        )
    if found.type not in _TIME_TYPES or (found.type == STRING) != (form is not None):
        raise StatementRefused(
            f"Timestamp column, `{wanted}`, should be LONG(INT64), TIMESTAMP, or a String with a "
            "timestamp_format specified."
        )
    return TimeColumn(wanted, form)


def _column_name(text: str) -> str:
    if text[:1] in ("`", '"') and text[-1:] == text[:1]:
        return text[1:-1]
    return text.upper()
