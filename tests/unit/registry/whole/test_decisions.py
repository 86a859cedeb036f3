"""The registry as a whole: decisions, records, replay; with Confluent's codes and sentences."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from penstock.registry.deleting import Deletion, delete_subject, delete_version
from penstock.registry.errors import RegistryError
from penstock.registry.finding import (
    Shown,
    find_guid,
    find_latest_with,
    find_schema,
    list_contexts,
    list_guid_ids,
    list_places,
    list_referrers,
    list_schemas,
    list_subjects,
    list_versions,
)
from penstock.registry.registering import (
    SchemaRegistration,
    SchemaRequest,
    check_compatibility,
    find_version,
    look_up,
    register,
)
from penstock.registry.settings import (
    SettingsChange,
    change_config,
    change_mode,
    config_of,
    delete_config,
    delete_mode,
    level_in_scope,
    mode_of,
)
from penstock.registry.state import RegistryState
from penstock.schemas.compatibility.levels import CompatibilityLevel
from penstock.schemas.definitions.avro import AvroDefinition


def parse(_kind: object, text: str, references: Any) -> AvroDefinition:
    return AvroDefinition.parse(text, references)


class Registry:
    """A topic and its one reader."""

    def __init__(self) -> None:
        self.state = RegistryState()
        self.log: list[tuple[bytes, bytes | None]] = []

    def write(self, decision: SchemaRegistration | Deletion | SettingsChange) -> None:
        for record in decision.records:
            self.log.append((record.key, record.value))
            self.state.apply(record.key, record.value)

    def register(self, subject: str, schema: Any, **body: Any) -> tuple[int, int]:
        request = SchemaRequest.of({"schema": json.dumps(schema), **body})
        made = register(self.state, subject, request, parse)
        self.write(made)
        return made.version.schema_id, made.version.version

    def delete(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        made = delete_subject(self.state, subject, permanent=permanent)
        self.write(made)
        return made.versions

    def delete_version(self, subject: str, version: str, *, permanent: bool = False) -> None:
        self.write(delete_version(self.state, subject, version, permanent=permanent))

    def config(self, subject: str | None, **changes: Any) -> None:
        self.write(change_config(self.state, subject, changes))

    def mode(self, subject: str | None, mode: str, *, force: bool = False) -> None:
        self.write(change_mode(self.state, subject, mode, force=force))


@pytest.fixture
def registry() -> Registry:
    return Registry()


def record(*fields: Any, name: str = "R") -> Any:
    made = [{"name": f, "type": "string"} if isinstance(f, str) else f for f in fields]
    return {"type": "record", "name": name, "fields": made}


OPTIONAL = {"name": "more", "type": "int", "default": 0}


def refused(action: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(RegistryError) as caught:
        action()
    return caught.value.code, caught.value.sentence


def test_the_same_schema_has_one_id_in_all_subjects(registry: Registry) -> None:
    assert registry.register("a", "string") == (1, 1)
    assert registry.register("b", {"type": "string"}) == (1, 1)
    assert registry.register("b", "string") == (1, 1)
    registry.config("b", compatibility="NONE")
    assert registry.register("b", "int") == (2, 2)
    assert len(registry.log) == 4, "registering again writes nothing"
    assert find_schema(registry.state, 1).text == '"string"'
    places = list_places(registry.state, 1)
    assert [(one.subject, one.version) for one in places] == [("a", 1), ("b", 1)]
    assert refused(lambda: find_schema(registry.state, 9)) == (40403, "Schema 9 not found")


def test_an_incompatible_schema_is_refused_with_the_reason(registry: Registry) -> None:
    registry.register("s", record("a"))
    code, sentence = refused(lambda: registry.register("s", record("a", "b")))
    assert code == 409
    assert sentence == (
        'Schema being registered is incompatible with an earlier schema for subject "s", details: '
        "[{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path "
        "'/fields/1' in the new schema has no default value and is missing in the old schema', "
        'additionalInfo:\'b\'}, {oldSchemaVersion: 1}, {oldSchema: \'{"type":"record","name":'
        '"R","fields":[{"name":"a","type":"string"}]}\'}, '
        "{validateFields: 'false', compatibility: 'BACKWARD'}]"
    )
    request = SchemaRequest.of({"schema": json.dumps(record("a", "b"))})
    verdict = check_compatibility(registry.state, "s", request, parse)
    assert not verdict.is_compatible
    assert verdict.messages[1] == "{oldSchemaVersion: 1}"
    assert check_compatibility(registry.state, "new", request, parse).is_compatible
    registry.config("s", compatibility="forward")
    assert check_compatibility(registry.state, "s", request, parse, version="latest").is_compatible
    code, _ = refused(lambda: check_compatibility(registry.state, "s", request, parse, version="7"))
    assert code == 40402


def test_transitive_levels_look_at_all_versions(registry: Registry) -> None:
    registry.register("s", record("a"))
    registry.config("s", compatibility="NONE")
    registry.register("s", record("a", "b"))
    registry.config("s", compatibility="BACKWARD")
    third = record("a", "b", OPTIONAL)
    request = SchemaRequest.of({"schema": json.dumps(third)})
    assert check_compatibility(registry.state, "s", request, parse).is_compatible
    registry.config("s", compatibility="BACKWARD_TRANSITIVE")
    verdict = check_compatibility(registry.state, "s", request, parse)
    assert "{oldSchemaVersion: 1}" in verdict.messages


def test_a_bad_schema_is_told_with_its_text(registry: Registry) -> None:
    code, sentence = refused(lambda: registry.register("s", "nothing"))
    assert code == 42201
    assert sentence == (
        "Invalid schema {subject=s,version=0,id=-1,schemaType=AVRO,references=[],metadata=null,"
        'ruleSet=null,schema="nothing"}, details: Undefined name: "nothing"'
    )
    assert refused(lambda: registry.register("s", "int", schemaType="XML"))[0] == 42201
    assert refused(lambda: SchemaRequest.of({})) == (42201, "Empty schema")


def test_a_schema_that_nests_without_end_or_cannot_be_compared_is_refused(
    registry: Registry,
) -> None:
    deep = SchemaRequest.of({"schema": '{"type":"array","items":' * 10_000})
    assert refused(lambda: register(registry.state, "s", deep, parse))[0] == 42201
    registry.register("s", [record(name=f"A{n}") for n in range(300)])
    many = [record(name=f"B{n}") for n in range(300)]
    assert refused(lambda: registry.register("s", many)) == (
        42201,
        "Invalid schema, details: the schemas are too large to be compared",
    )


@pytest.mark.parametrize("subject", ["", "a\nb", "__GLOBAL", "__EMPTY", ":.c:", "a" * 10_001])
def test_a_subject_without_a_usable_name_is_refused(registry: Registry, subject: str) -> None:
    code, sentence = refused(lambda: registry.register(subject, "int"))
    assert code == 42208
    assert sentence == f"The specified subject '{subject}' is not a valid subject."


def test_versions_are_found_by_number_and_as_latest(registry: Registry) -> None:
    registry.register("s", record("a"))
    registry.register("s", record("a", OPTIONAL))
    state = registry.state
    assert find_version(state, "s", "latest").version == 2
    assert find_version(state, "s", "-1").version == 2
    assert find_version(state, "s", "1").schema_id == 1
    assert list_versions(state, "s") == [1, 2]
    assert refused(lambda: find_version(state, "t", "1")) == (40401, "Subject 't' not found.")
    assert refused(lambda: find_version(state, "s", "3")) == (40402, "Version 3 not found.")
    for wrong in ("0", "x", "-2", "2147483648", "", "²"):
        code, sentence = refused(lambda wrong=wrong: find_version(state, "s", wrong))
        assert code == 42202
        assert sentence.startswith(f"The specified version '{wrong}' is not a valid version id.")


def test_a_schema_is_looked_up_under_its_subject(registry: Registry) -> None:
    registry.register("s", "string")
    request = SchemaRequest.of({"schema": '{ "type" : "string" }'})
    assert look_up(registry.state, "s", request, parse).version == 1
    other = SchemaRequest.of({"schema": '"int"'})
    assert refused(lambda: look_up(registry.state, "s", other, parse)) == (
        40403,
        "Schema not found",
    )
    assert refused(lambda: look_up(registry.state, "t", request, parse))[0] == 40401


def test_deleting_a_subject_is_soft_first(registry: Registry) -> None:
    registry.register("s", record("a"))
    registry.register("s", record("a", OPTIONAL))
    registry.config("s", compatibility="FULL")
    sentence = "Subject 's' was not deleted first before being permanently deleted"
    assert refused(lambda: registry.delete("s", permanent=True)) == (40405, sentence)
    assert registry.delete("s") == (1, 2)
    assert refused(lambda: registry.delete("s")) == (
        40404,
        "Subject 's' was soft deleted.Set permanent=true to delete permanently",
    )
    assert list_subjects(registry.state) == []
    assert list_subjects(registry.state, shown=Shown(deleted=True)) == ["s"]
    assert list_subjects(registry.state, shown=Shown(deleted_only=True)) == ["s"]
    assert find_schema(registry.state, 1).text, "an id stays known while a version is soft deleted"
    assert registry.state.configs == {}, "settings go with the subject"
    assert registry.register("s", record("b")) == (3, 3), "numbers go on"
    registry.delete_version("s", "3")
    assert registry.delete("s", permanent=True) == (1, 2, 3)
    assert refused(lambda: find_schema(registry.state, 1))[0] == 40403
    assert registry.register("s", record("b")) == (4, 1), "no id is given again"


def test_deleting_a_version_is_soft_first(registry: Registry) -> None:
    registry.register("s", "string")
    assert refused(lambda: registry.delete_version("s", "1", permanent=True)) == (
        40407,
        "Subject 's' Version 1 was not deleted first before being permanently deleted",
    )
    registry.delete_version("s", "latest")
    assert refused(lambda: registry.delete_version("s", "1"))[0] == 40406
    assert refused(lambda: registry.delete_version("s", "2"))[0] == 40402
    registry.delete_version("s", "1", permanent=True)
    assert refused(lambda: registry.delete_version("s", "1"))[0] == 40401


def test_a_referenced_version_cannot_be_deleted(registry: Registry) -> None:
    registry.register("part", record("a", name="Part"))
    reference = {"name": "Part", "subject": "part", "version": 1}
    whole = {"type": "record", "name": "W", "fields": [{"name": "p", "type": "Part"}]}
    assert registry.register("whole", whole, references=[reference]) == (2, 1)
    assert list_referrers(registry.state, "part", "1") == [2]
    expected = (
        42206,
        "One or more references exist to the schema "
        "{magic=1,keytype=SCHEMA,subject=part,version=1}.",
    )
    assert refused(lambda: registry.delete("part")) == expected
    assert refused(lambda: registry.delete_version("part", "1")) == expected
    registry.delete("whole")
    assert list_referrers(registry.state, "part", "1") == []
    registry.delete("part")
    missing = {"name": "Part", "subject": "nowhere", "version": 3}
    assert refused(lambda: registry.register("x", whole, references=[missing])) == (
        42201,
        'No schema reference found for subject "nowhere" and version 3',
    )


def test_contexts_have_ids_and_settings_of_their_own(registry: Registry) -> None:
    registry.register("s", "string")
    registry.config("s", compatibility="NONE")
    registry.register("s", "int")
    assert registry.register(":.stage:s", "int") == (1, 1)
    assert registry.register(":.:s", "int") == (2, 2), "`:.:` is the default context"
    assert list_contexts(registry.state) == [".", ".stage"]
    assert list_subjects(registry.state) == ["s"]
    assert list_subjects(registry.state, ":.stage:") == [":.stage:s"]
    assert list_subjects(registry.state, ":*:") == [":.stage:s", "s"]
    assert find_schema(registry.state, 1).text == '"string"'
    assert find_schema(registry.state, 1, ":.stage:").text == '"int"'
    registry.config(":.stage:", compatibility="FORWARD")
    state = registry.state
    assert config_of(state, ":.stage:s", default_to_global=True) == {
        "compatibilityLevel": "FORWARD"
    }
    assert config_of(state, None, default_to_global=False) == {"compatibilityLevel": "BACKWARD"}
    guid = find_schema(state, 2).guid
    assert list_guid_ids(state, guid) == [(".", 2), (".stage", 1)]
    assert find_guid(state, guid).text == '"int"'
    assert refused(lambda: find_guid(state, "x")) == (40403, "Schema x not found")
    assert [one.subject for one in list_schemas(state, ":*:", latest_only=True)] == [
        ":.stage:s",
        "s",
    ]


def test_settings_are_merged_and_taken_away(registry: Registry) -> None:
    state = registry.state
    assert refused(lambda: config_of(state, "s", default_to_global=False)) == (
        40408,
        "Subject 's' does not have subject-level compatibility configured",
    )
    registry.config("s", compatibility="full", normalize=True)
    registry.config("s", alias="t")
    assert state.configs["s"] == {"alias": "t", "normalize": True, "compatibilityLevel": "FULL"}
    registry.config("s", alias=None)
    assert "alias" not in state.configs["s"]
    assert refused(lambda: registry.config("s", compatibility="SOME"))[0] == 42203
    gone = delete_config(state, "s")
    assert gone.answer["compatibilityLevel"] == "FULL"
    registry.write(gone)
    assert refused(lambda: delete_config(state, "s"))[0] == 40401


def test_an_alias_leads_to_another_subject(registry: Registry) -> None:
    registry.register("real", "string")
    registry.config("nick", alias="real")
    assert find_version(registry.state, "nick", "latest").subject == "real"
    assert list_versions(registry.state, "nick") == [1]


def test_modes_forbid_and_allow(registry: Registry) -> None:
    state = registry.state
    registry.register("s", "string")
    registry.mode("s", "READONLY")
    sentence = "Subject s is in read-only mode"
    assert refused(lambda: registry.register("s", "int")) == (42205, sentence)
    assert registry.register("s", "string") == (1, 1), "what is there is told in any mode"
    assert refused(lambda: registry.delete("s")) == (42205, sentence)
    assert refused(lambda: registry.config("s", compatibility="NONE")) == (42205, sentence)
    assert registry.register("t", "string") == (1, 1)
    assert refused(lambda: mode_of(state, "t", default_to_global=False)) == (
        40409,
        "Subject 't' does not have subject-level mode configured",
    )
    registry.mode("t", "READWRITE")
    registry.mode(None, "READONLY_OVERRIDE")
    assert refused(lambda: registry.register("t", "int"))[0] == 42205
    registry.mode(None, "READWRITE")
    assert refused(lambda: registry.mode(None, "SOME"))[0] == 42204
    assert refused(lambda: registry.mode("s", "IMPORT")) == (
        42205,
        "Cannot import since found existing subjects",
    )
    registry.write(delete_mode(state, "s"))
    assert refused(lambda: delete_mode(state, "s"))[0] == 40401


def test_an_import_keeps_ids_and_versions(registry: Registry) -> None:
    assert refused(lambda: registry.register("s", "int", id=7)) == (
        42205,
        "Subject s is not in import mode",
    )
    registry.mode("s", "IMPORT")
    assert registry.register("s", "int", id=7, version=4) == (7, 4)
    assert registry.register("s", "string", id=9, version=2) == (9, 2), "in any order"
    assert list_versions(registry.state, "s") == [2, 4]
    assert refused(lambda: registry.register("s", "long", id=7)) == (
        42205,
        "Overwrite new schema with id 7 is not permitted.",
    )
    assert refused(lambda: registry.register("s", "long")) == (
        42205,
        "Subject s is not in read-write mode",
    )
    assert registry.register("t", "long") == (10, 1)
    assert refused(lambda: registry.register("t", "string", version=5))[0] in (409, 42201)


def test_metadata_and_rules_are_merged_with_the_settings(registry: Registry) -> None:
    registry.config(
        "s",
        defaultMetadata={"properties": {"owner": "shop", "team": "a"}},
        overrideMetadata={"properties": {"team": "b"}, "tags": {"a": ["PII"]}},
        defaultRuleSet={"domainRules": [{"name": "one", "kind": "CONDITION", "type": "CEL"}]},
    )
    registry.register("s", record("a"), metadata={"properties": {"owner": "me"}})
    content = find_version(registry.state, "s", "1").content
    assert content.metadata == {
        "tags": {"a": ["PII"]},
        "properties": {"owner": "me", "team": "b"},
    }
    assert content.rule_set == {
        "domainRules": [{"name": "one", "kind": "CONDITION", "type": "CEL"}]
    }
    assert find_latest_with(registry.state, "s", {"owner": "me"}).version == 1
    assert refused(lambda: find_latest_with(registry.state, "s", {"owner": "x"}))[0] == 40403
    bad = {"domainRules": [{"name": "x"}, {"name": "x"}]}
    assert refused(lambda: registry.register("s", "int", ruleSet=bad))[0] == 42210


def test_a_group_is_compatible_within_itself_only(registry: Registry) -> None:
    registry.config("s", compatibilityGroup="major")
    registry.register("s", record("a"), metadata={"properties": {"major": "1"}})
    second = registry.register("s", record("b"), metadata={"properties": {"major": "2"}})
    assert second == (2, 2)
    code, _ = refused(
        lambda: registry.register("s", record("c"), metadata={"properties": {"major": "2"}})
    )
    assert code == 409


def test_reserved_names_stay_reserved_where_fields_are_validated(registry: Registry) -> None:
    registry.config("s", validateFields=True)
    kept = {"properties": {"confluent:reserved": "old, older"}}
    registry.register("s", record("a"), metadata=kept)
    code, sentence = refused(
        lambda: registry.register("s", record("a", {**OPTIONAL, "name": "old"}), metadata=kept)
    )
    assert code == 409
    assert "conflicts with the reserved field old" in sentence
    assert "{validateFields: 'true', compatibility: 'BACKWARD'}" in sentence


def test_normalising_makes_one_schema_of_two_texts(registry: Registry) -> None:
    first = {"type": "string", "b": 1, "a": 2}
    second = {"type": "string", "a": 2, "b": 1}
    assert registry.register("plain", first) == (1, 1)
    assert registry.register("plain", second) == (2, 2)
    registry.config("n", normalize=True)
    assert registry.register("n", first) == registry.register("n", second)


def test_a_level_that_no_record_sets_is_the_states_own() -> None:
    state = RegistryState(default_level=CompatibilityLevel.FULL)
    assert config_of(state, None, default_to_global=False) == {"compatibilityLevel": "FULL"}
    assert level_in_scope(state, "orders") is CompatibilityLevel.FULL
