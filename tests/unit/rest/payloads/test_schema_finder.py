"""Schemas are asked for once, and what is remembered stays within bounds."""

import pytest

from penstock.rest.payloads import schema_finder
from penstock.rest.payloads.schema_choice import SchemaChoice
from penstock.rest.payloads.schema_finder import RegisteredAt, SchemaFinder
from penstock.schemas.errors import SchemaError, UnknownSchema
from penstock.schemas.lookup import SchemaKind, SchemaRule, StoredSchema
from penstock.schemas.registry_client import NewSchema
from penstock.schemas.subject_names import record_name


class ScriptedRegistry:
    """A registry in memory that notes what it is asked."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.asked: list[object] = []
        self.rules: tuple[SchemaRule, ...] = ()

    def by_id(self, schema_id: int) -> StoredSchema:
        self.asked.append(schema_id)
        if not 0 < schema_id <= len(self.texts):
            raise UnknownSchema(schema_id, "here")
        text = self.texts[schema_id - 1]
        return StoredSchema(schema_id=schema_id, kind=SchemaKind.AVRO, text=text, rules=self.rules)

    def at_version(self, subject: str, version: int | None) -> RegisteredAt:
        self.asked.append((subject, version))
        number = version or len(self.texts)
        return RegisteredAt(number, subject, number)

    def register(self, subject: str, schema: NewSchema) -> RegisteredAt:
        self.asked.append((subject, schema.text))
        if schema.text not in self.texts:
            self.texts.append(schema.text)
        number = self.texts.index(schema.text) + 1
        return RegisteredAt(number, subject, number)


def text_choice(text: str) -> SchemaChoice:
    return SchemaChoice(topic="t", is_key=False, kind=SchemaKind.AVRO, text=text)


def test_a_text_is_registered_once_and_known_from_then_on() -> None:
    registry = ScriptedRegistry()
    finder = SchemaFinder(registry)
    assert finder.known(text_choice('"int"')) is None
    found = finder.find(text_choice('"int"'))
    assert (found.codec.schema_id, found.subject, found.version) == (1, "t-value", 1)
    asked = len(registry.asked)
    assert finder.known(text_choice('"int"')) is found
    assert finder.find(text_choice('"int"')) is found
    by_id = finder.find(SchemaChoice(topic="t", is_key=True, schema_id=1))
    assert (by_id.subject, by_id.codec) == ("t-key", found.codec)
    assert len(registry.asked) == asked


def test_the_latest_is_the_latest_for_a_moment_only() -> None:
    registry, now = ScriptedRegistry(), 0.0
    finder = SchemaFinder(registry, lambda: now)
    finder.find(text_choice('"int"'))
    latest = SchemaChoice(topic="t", is_key=False)
    assert finder.find(latest).version == 1
    finder.find(text_choice('"long"'))
    assert finder.find(latest).version == 1
    now = 2 * schema_finder.LATEST_S
    assert finder.known(latest) is None
    assert finder.find(latest).version == 2
    first = SchemaChoice(topic="t", is_key=False, version=1)
    assert finder.find(first).codec.schema_id == 1


def test_a_subject_can_be_named_after_the_record() -> None:
    registry = ScriptedRegistry()
    text = '{"type":"record","name":"a.R","fields":[]}'
    choice = SchemaChoice(
        topic="t", is_key=False, kind=SchemaKind.AVRO, text=text, strategy=record_name
    )
    finder = SchemaFinder(registry)
    assert finder.find(choice).subject == "a.R"
    by_id = SchemaChoice(topic="t", is_key=False, schema_id=1, strategy=record_name)
    assert finder.find(by_id).subject == "a.R"


def test_a_schema_of_another_language_is_refused() -> None:
    registry = ScriptedRegistry()
    finder = SchemaFinder(registry)
    finder.find(text_choice('"int"'))
    with pytest.raises(SchemaError, match="is AVRO, but JSON"):
        finder.find(SchemaChoice(topic="t", is_key=False, kind=SchemaKind.JSON, schema_id=1))


def test_failures_are_not_remembered() -> None:
    registry = ScriptedRegistry()
    finder = SchemaFinder(registry)
    missing = SchemaChoice(topic="t", is_key=False, schema_id=1)
    with pytest.raises(UnknownSchema):
        finder.find(missing)
    registry.texts.append('"int"')
    assert finder.find(missing).codec.encode(5)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_finder, "CHOICES_MAX", 2)
    finder = SchemaFinder(ScriptedRegistry())
    for size in (1, 2, 3):
        finder.find(text_choice(f'{{"type":"fixed","name":"F","size":{size}}}'))
    known = [
        finder.known(text_choice(f'{{"type":"fixed","name":"F","size":{size}}}')) is not None
        for size in (1, 2, 3)
    ]
    assert known == [False, True, True]


def test_nothing_is_written_or_read_past_the_rules_of_a_data_contract() -> None:
    registry = ScriptedRegistry()
    registry.rules = (SchemaRule(name="hide", kind="ENCRYPT", mode="WRITE"),)
    finder = SchemaFinder(registry)
    with pytest.raises(SchemaError, match="the rule hide"):
        finder.find(text_choice('"int"'))
    assert finder.codec(1).schema_id == 1
    registry.rules = (SchemaRule(name="hide", kind="ENCRYPT", mode="WRITEREAD"),)
    with pytest.raises(SchemaError, match="the rule hide"):
        SchemaFinder(registry).codec(1)
