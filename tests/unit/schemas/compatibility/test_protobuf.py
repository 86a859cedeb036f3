"""Protobuf's rules: what we call readable, the parser reads with the values that were written."""

import base64

import pytest

from penstock.schemas.definitions import protoc
from penstock.schemas.definitions.definition import NamedText
from penstock.schemas.definitions.parse import parse_definition
from penstock.schemas.definitions.protobuf import ProtobufDefinition
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind
from penstock.schemas.protobuf import ProtobufSchema

pytest.importorskip("grpc_tools")

HEAD = 'syntax = "proto3";\n'
ORDER = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
option java_package = "a.b";
message Order { // a comment
  string id = 1; repeated int32 n = 2; map<string, Item> items = 3;
  oneof pick { int64 a = 4; string b = 5; }
  optional bool ok = 6; google.protobuf.Timestamp at = 7;
  message Item { double price = 1 [deprecated = true]; }
  reserved 10 to 12; reserved "x"; enum E { Z = 0; O = 1; } E e = 8;
}
service S { rpc Do (Order) returns (stream Order); }
"""


def parsed(body: str, *references: NamedText) -> ProtobufDefinition:
    return ProtobufDefinition.parse(HEAD + body, references)


def kinds(new: str, old: str) -> list[tuple[str, str]]:
    return [(one.kind, one.path) for one in parsed(new).differences(parsed(old))]


def test_what_is_printed_compiles_to_the_same() -> None:
    first = ProtobufDefinition.parse(ORDER)
    again = ProtobufDefinition.parse(first.normalised())
    assert again.normalised() == first.normalised()
    assert "a comment" not in first.normalised()
    assert "a comment" in first.canonical()
    assert again.differences(first) == first.differences(again) == []
    compiled = base64.b64encode(first.compiled.file.SerializeToString()).decode()
    assert ProtobufDefinition.parse(compiled).normalised() == first.normalised()
    assert first.top_level_fields() >= {"id", "items"}


PAIRS = [
    ("message M { int32 a = 1; int32 b = 2; }", "message M { int32 a = 1; }", []),
    ("message M { }", "message M { int32 a = 1; }", []),
    ("message M { int64 z = 1; }", "message M { int32 a = 1; }", []),
    (
        "message M { string a = 1; }",
        "message M { int32 a = 1; }",
        [("FIELD_SCALAR_KIND_CHANGED", "#/M/1")],
    ),
    (
        "message M { sint32 a = 1; }",
        "message M { int32 a = 1; }",
        [("FIELD_SCALAR_KIND_CHANGED", "#/M/1")],
    ),
    (
        "message M { int32 a = 1; }",
        "message M { repeated int32 a = 1; }",
        [("FIELD_NUMERIC_LABEL_CHANGED", "#/M/1")],
    ),
    ("message M { string a = 1; }", "message M { repeated string a = 1; }", []),
    (
        "message M { N a = 1; } message N { }",
        "message M { int32 a = 1; } message N { }",
        [("FIELD_KIND_CHANGED", "#/M/1")],
    ),
    (
        "message M { O a = 1; } message N { } message O { }",
        "message M { N a = 1; } message N { } message O { }",
        [("FIELD_NAMED_TYPE_CHANGED", "#/M/1")],
    ),
    ("message N { }", "message M { }", [("MESSAGE_REMOVED", "#/M")]),
    ("message M { }", "message M { message I { } }", [("MESSAGE_REMOVED", "#/M/I")]),
    (
        "message M { oneof o { int32 a = 1; } }",
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        [("ONEOF_FIELD_REMOVED", "#/M/o/2")],
    ),
    (
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        "message M { int32 a = 1; int32 b = 2; }",
        [("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/M/o")],
    ),
    (
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        "message M { int32 a = 1; oneof o { int32 b = 2; } }",
        [("FIELD_MOVED_TO_EXISTING_ONEOF", "#/M/o")],
    ),
    ("message M { oneof o { int32 a = 1; } }", "message M { int32 a = 1; }", []),
]


@pytest.mark.parametrize(("new", "old", "expected"), PAIRS)
def test_pairs_have_their_kind_and_path(
    new: str, old: str, expected: list[tuple[str, str]]
) -> None:
    assert kinds(new, old) == expected


def test_required_fields_may_neither_come_nor_go() -> None:
    def two(body: str) -> ProtobufDefinition:
        return ProtobufDefinition.parse(f'syntax = "proto2"; message M {{ {body} }}')

    with_one, without = two("required int32 a = 1;"), two("")
    optional = two("optional int32 a = 1;")
    assert [d.kind for d in with_one.differences(without)] == ["REQUIRED_FIELD_ADDED"]
    assert [d.kind for d in without.differences(with_one)] == ["REQUIRED_FIELD_REMOVED"]
    assert [d.kind for d in with_one.differences(optional)] == ["REQUIRED_FIELD_ADDED"]
    assert optional.differences(with_one) == []


def test_values_of_readable_fields_are_read() -> None:
    old = parsed("message M { int32 a = 1; string b = 2; repeated string c = 3; }")
    new = parsed("message M { int64 x = 1; bytes b = 2; string c = 3; int32 d = 4; }")
    assert new.differences(old) == []
    written = ProtobufSchema.of(old.descriptor_set, "M").message_class(a=7, b="v", c=["1", "2"])
    read = ProtobufSchema.of(new.descriptor_set, "M").decode(written.SerializeToString())
    assert (read.x, read.b, read.c, read.d) == (7, b"v", "2", 0)  # type: ignore[attr-defined]


def test_references_are_imported_by_name_and_stay_inside() -> None:
    part = NamedText(name="a/part.proto", text=HEAD + "message Part { int32 n = 1; }")
    mine = parsed('import "a/part.proto"; message M { Part p = 1; }', part)
    other = NamedText(name="a/part.proto", text=HEAD + "message Part { string n = 1; }")
    changed = parsed('import "a/part.proto"; message M { Part p = 1; }', other)
    assert [d.kind for d in changed.differences(mine)] == ["FIELD_SCALAR_KIND_CHANGED"]
    for name in ("../out.proto", "/etc/x.proto", "", protoc.ROOT_FILE):
        with pytest.raises(SchemaError, match="cannot be named"):
            parsed("message M { }", NamedText(name=name, text=HEAD))


def test_what_does_not_compile_is_told_in_the_compilers_words() -> None:
    with pytest.raises(SchemaError, match="Expected message name"):
        parse_definition(SchemaKind.PROTOBUF, "message {")
    with pytest.raises(SchemaError):
        parse_definition(SchemaKind.PROTOBUF, "message M {" * 10_000)


def test_a_compiler_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protoc, "TIME_LIMIT_S", 0.001)
    with pytest.raises(SchemaError, match="to compile"):
        parsed("message GivenUp { int32 a = 1; }")


def test_a_text_with_custom_options_is_kept_as_it_is() -> None:
    text = (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; '
        "extend google.protobuf.FieldOptions { string tag = 50000; } "
        'message M { int32 a = 1 [(tag) = "x"]; }'
    )
    mine = ProtobufDefinition.parse(text)
    assert '(tag) = "x"' in mine.normalised()
