"""A schema's text to its definition, by language.

Protobuf needs a compiler, which is a process of its own; without one its schemas are refused with
a sentence that says what to install.
"""

from collections.abc import Sequence

from penstock.schemas.definitions.avro import AvroDefinition
from penstock.schemas.definitions.definition import NamedText, SchemaDefinition
from penstock.schemas.definitions.json_schema import JsonDefinition
from penstock.schemas.definitions.protobuf import ProtobufDefinition
from penstock.schemas.lookup import SchemaKind


def parse_definition(
    kind: SchemaKind, text: str, references: Sequence[NamedText] = ()
) -> SchemaDefinition:
    """The schema, understood; SchemaError says what is wrong with it."""
    match kind:
        case SchemaKind.AVRO:
            return AvroDefinition.parse(text, references)
        case SchemaKind.JSON:
            return JsonDefinition.parse(text, references)
        case SchemaKind.PROTOBUF:
            return ProtobufDefinition.parse(text, references)
