"""Records of `_schemas`: keys byte for byte, foreign kinds skipped, damage told."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.registry.deleting import delete_subject
from penstock.registry.errors import RegistryError
from penstock.registry.finding import list_contexts, list_schemas
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
from penstock.registry.registering import SchemaRequest, register
from penstock.registry.schema import SchemaContent, SchemaReference, SchemaVersion
from penstock.registry.state import RegistryState
from penstock.schemas.definitions.parse import parse_definition
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


_WORDS = ["SCHEMA", "CONFIG", "MODE", "DELETE_SUBJECT", "CLEAR_SUBJECT", "CONTEXT", "NOOP", "X"]
_NAMES = ["keytype", "subject", "version", "id", "schema", "schemaType", "references", "metadata"]
_NAMES += ["ruleSet", "deleted", "context", "mode", "maxId", "name", "magic", "compatibilityLevel"]
_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.sampled_from([*_WORDS, "s", "", ":.c:s"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4)
    ),
    max_leaves=6,
)
_OBJECTS = st.dictionaries(st.sampled_from(_NAMES), _VALUES).map(
    lambda one: json.dumps(one).encode()
)
_KEYS = st.builds(
    lambda word, more: json.dumps({**more, "keytype": word}).encode(),
    st.sampled_from(_WORDS),
    st.dictionaries(st.sampled_from(_NAMES), _VALUES),
)
_BYTES = st.one_of(st.none(), st.binary(), _OBJECTS)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.one_of(_BYTES, _KEYS), _BYTES), max_size=8))
def test_any_records_are_taken_in_or_told(
    records: list[tuple[bytes | None, bytes | None]],
) -> None:
    """Foreign records neither end the reader nor leave a state that cannot be asked or written."""
    state = RegistryState()
    for key, value in records:
        with suppress(DamagedRecord):
            state.apply(key, value)
    for name in (*state.subjects, "new"):
        asked = SchemaRequest.of({"schema": '"int"'})
        with suppress(RegistryError):
            register(state, name, asked, parse_definition)
        with suppress(RegistryError):
            delete_subject(state, name)
    list_schemas(state, ":*:")
    list_contexts(state)
