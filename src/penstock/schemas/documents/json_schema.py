"""JSON under a JSON Schema: the document itself, checked before it is written.

`jsonschema-rs` checks, in Rust and within bounds: a pattern gives up after so many steps, and what
a schema refers to is among its references or nowhere, never fetched from the network.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urljoin

import jsonschema_rs

from penstock.schemas.errors import DecodeError, EncodeError, SchemaError
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.wire_header import HEADER_BYTES, read_header, write_header

_HOME = "http://schema.invalid/"  # Where a schema without an address is; nobody goes there.
_TOLD_CHARACTERS_MAX = 500
_STEPS_MAX = 100_000  # A pattern that must go back more often than this does not match.


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonDocuments:
    """Documents of one JSON Schema."""

    schema_id: int
    header: bytes
    validator: jsonschema_rs.Validator

    @classmethod
    def of(cls, stored: StoredSchema) -> "JsonDocuments":
        """From a schema that a lookup found."""
        return cls(
            schema_id=stored.schema_id,
            header=write_header(stored.schema_id),
            validator=json_validator(stored),
        )

    def encode(self, document: Any) -> bytes:
        """The bytes of a document with their header."""
        wrong = first_error(self.validator, document)
        if wrong is not None:
            raise EncodeError(f"the document is not of the JSON schema: {wrong}")
        return self.header + write_json(document)

    def decode(self, data: bytes) -> Any:
        """The document in bytes with a header."""
        read_header(data)
        return read_json(data[HEADER_BYTES:])


def json_validator(stored: StoredSchema) -> jsonschema_rs.Validator:
    """What checks values against a stored schema and those that it refers to."""
    stored.expect(SchemaKind.JSON)
    documents = {one.name: one.text for one in stored.references}
    try:
        schema = json.loads(stored.text)
        home = _address(schema)
        return jsonschema_rs.validator_for(
            schema,
            base_uri=home,
            retriever=_retriever(documents, home),
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_STEPS_MAX),
        )
    except (ValueError, RecursionError, jsonschema_rs.ValidationError) as error:
        raise SchemaError(f"this is not a JSON schema: {error}") from error
    except jsonschema_rs.ReferencingError as error:
        raise SchemaError(f"a reference of the JSON schema leads nowhere: {error}") from error


def first_error(validator: jsonschema_rs.Validator, document: Any) -> str | None:
    """What is wrong with a document, and where; None if nothing is."""
    try:
        validator.validate(document)
    except jsonschema_rs.ValidationError as error:
        where = "/".join(str(part) for part in error.instance_path)
        told = error.message[:_TOLD_CHARACTERS_MAX]
        return f"{where}: {told}" if where else told
    except (ValueError, RecursionError) as error:
        return str(error)
    return None


def write_json(document: Any) -> bytes:
    """JSON without spaces, as serializers write it."""
    try:
        return json.dumps(
            document, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise EncodeError(f"the value has no JSON form: {error}") from error


def read_json(data: bytes) -> Any:
    """One JSON document that fills the bytes."""
    try:
        return json.loads(data.decode(), parse_constant=_refuse_constant)
    except RecursionError:
        raise DecodeError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise DecodeError(f"the bytes are not JSON: {error}") from error


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _address(schema: Any) -> str:
    own = schema.get("$id") or schema.get("id") if isinstance(schema, dict) else None
    return urljoin(_HOME, own) if isinstance(own, str) else _HOME


def _retriever(documents: Mapping[str, str], home: str) -> Callable[[str], Any]:
    """Finds a reference by its name, or by its name beside the schema's own address."""
    addresses = {urljoin(home, name): text for name, text in documents.items()} | {**documents}

    def retrieve(address: str) -> Any:
        if address not in addresses:
            raise ValueError(f"{address} is not among the references of the schema")
        return json.loads(addresses[address])

    return retrieve
