"""Records of `_schemas`: keys byte for byte, foreign kinds skipped, damage told."""

import json

import pytest

from penstock.registry.records import (
    NOOP,
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DamagedRecord,
    DeleteSubjectKey,
    ModeKey,
    OtherKey,
    SchemaKey,
    StoreKey,
    config_record,
    context_record,
    decode_key,
    decode_schema,
    delete_subject_record,
    encode_key,
    mode_record,
    schema_record,
    tombstone,
)
from penstock.registry.schema import SchemaContent, SchemaReference, SchemaVersion
from penstock.registry.state import RegistryState
from penstock.schemas.lookup import SchemaKind

KEYS: list[tuple[StoreKey, bytes]] = [
    (
        SchemaKey(subject="orders-value", version=3),
        b'{"keytype":"SCHEMA","subject":"orders-value","version":3,"magic":1}',
    ),
    (
        SchemaKey(subject=':.stage:a/"ä"', version=1),
        '{"keytype":"SCHEMA","subject":":.stage:a/\\"ä\\"","version":1,"magic":1}'.encode(),
    ),
    (ConfigKey(subject=None), b'{"keytype":"CONFIG","subject":null,"magic":0}'),
    (ConfigKey(subject="s"), b'{"keytype":"CONFIG","subject":"s","magic":0}'),
    (ModeKey(subject=None), b'{"keytype":"MODE","subject":null,"magic":0}'),
    (DeleteSubjectKey(subject="s"), b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}'),
    (ClearSubjectKey(subject="s"), b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}'),
    (
        ContextKey(context=".c"),
        b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
    ),
    (OtherKey(keytype="NOOP"), b'{"keytype":"NOOP","magic":0}'),
]


@pytest.mark.parametrize(("key", "data"), KEYS)
def test_keys_are_written_and_read_byte_for_byte(key: StoreKey, data: bytes) -> None:
    assert encode_key(key) == data
    assert decode_key(data) == key


def test_control_letters_are_written_as_jackson_does() -> None:
    data = encode_key(ConfigKey(subject="a\x1f\n"))
    assert data == b'{"keytype":"CONFIG","subject":"a\\u001F\\n","magic":0}'


def test_a_key_with_its_fields_in_another_order_is_understood() -> None:
    data = b'{"magic": 1, "version": 3, "subject": "s", "keytype": "SCHEMA"}'
    assert decode_key(data) == SchemaKey(subject="s", version=3)


def test_values_leave_out_what_is_empty() -> None:
    plain = SchemaVersion(subject="s", version=1, schema_id=4, content=SchemaContent(text='"int"'))
    assert schema_record(plain).value == (
        b'{"subject":"s","version":1,"id":4,"schema":"\\"int\\"","deleted":false}'
    )
    full = SchemaVersion(
        subject="s",
        version=2,
        schema_id=5,
        content=SchemaContent(
            text="{}",
            kind=SchemaKind.JSON,
            references=(SchemaReference(name="n", subject="r", version=1),),
            metadata={"properties": {"a": "b"}},
        ),
        deleted=True,
    )
    assert schema_record(full).value == (
        b'{"subject":"s","version":2,"id":5,"schemaType":"JSON","references":[{"name":"n",'
        b'"subject":"r","version":1}],"metadata":{"properties":{"a":"b"}},"schema":"{}",'
        b'"deleted":true}'
    )
    assert decode_schema(schema_record(full).value or b"") == full
    assert config_record(None, {"compatibilityLevel": "FULL"}).value == (
        b'{"compatibilityLevel":"FULL"}'
    )
    assert mode_record("s", "IMPORT").value == b'{"subject":"s","mode":"IMPORT"}'
    assert delete_subject_record("s", 3).value == b'{"subject":"s","version":3}'
    assert context_record(".c").value == b'{"tenant":"default","context":".c"}'
    assert (NOOP.value, tombstone("s", 1).value) == (None, None)


def test_fields_of_other_registries_survive_a_rewrite() -> None:
    data = (
        b'{"subject":"s","version":1,"id":1,"md5":"AAAA","schema":"\\"int\\"","deleted":false,'
        b'"ts":5}'
    )
    told = json.loads(schema_record(decode_schema(data).soft_deleted()).value or b"")
    assert told["md5"] == "AAAA"
    assert told["ts"] == 5
    assert told["deleted"] is True


SCHEMA_KEY = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"", b"{}"),
        (b"\xff\xfe", b"{}"),
        (b"[]", b"{}"),
        (b"{}", b"{}"),
        (b'{"keytype":"SCHEMA"}', b"{}"),
        (b'{"keytype":"CONFIG","subject":3}', b"{}"),
        (b'{"keytype":"MODE","subject":null}', b'{"mode":1}'),
        (SCHEMA_KEY, b"not json"),
        (SCHEMA_KEY, b"{}"),
        (SCHEMA_KEY, b'{"subject":"s","version":1,"id":-1,"schema":""}'),
        (SCHEMA_KEY, b'{"subject":"s","version":2,"id":1,"schema":"\\"int\\""}'),
        (SCHEMA_KEY, b'{"subject":"s","version":1,"id":1,"schema":"","schemaType":"XML"}'),
        (SCHEMA_KEY, b'{"subject":"s","version":1,"id":1,"schema":"","references":[3]}'),
        (SCHEMA_KEY, b'{"subject":"s","version":1,"id":1,"schema":"","metadata":3}'),
        (SCHEMA_KEY, b"[" * 100_000),
    ],
)
def test_a_damaged_record_is_told_and_changes_nothing(
    key: bytes | None, value: bytes | None
) -> None:
    state = RegistryState()
    state.apply(SCHEMA_KEY, b'{"subject":"s","version":1,"id":1,"schema":"\\"int\\""}')
    before = list(state.subjects["s"].items())
    with pytest.raises(DamagedRecord):
        state.apply(key, value)
    assert list(state.subjects["s"].items()) == before


def test_kinds_that_are_not_known_are_skipped() -> None:
    state = RegistryState()
    state.apply(b'{"keytype":"ASSOC","tenant":"default","magic":0}', b"anything")
    state.apply(NOOP.key, NOOP.value)
    assert state == RegistryState()
