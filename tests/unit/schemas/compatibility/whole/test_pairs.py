"""Every pair of tests/golden/schemas at every level, with the reasons that we give."""

import re
from collections import Counter

import pytest
from tests.unit.schemas.compatibility.whole.pairs import YES, Case, read_cases

from penstock.schemas.compatibility.levels import (
    CompatibilityLevel,
    Earlier,
    pair_reasons,
    reasons,
)
from penstock.schemas.definitions.definition import SchemaDefinition
from penstock.schemas.lookup import SchemaKind

CASES = [case for kind in SchemaKind for case in read_cases(kind)]
PAIRS = [case for case in CASES if "old" in case.words]
HISTORIES = [case for case in CASES if "first" in case.words]
_KIND = re.compile(r"errorType:[\"']([A-Z_0-9]+)")


def name(case: Case) -> str:
    return f"{case.kind}: {case.title}"


def skip_without_compiler(case: Case) -> None:
    if case.kind is SchemaKind.PROTOBUF:
        pytest.importorskip("grpc_tools")


def told(reader: SchemaDefinition, writer: SchemaDefinition) -> str:
    found = [f"{one.kind} {one.path}" for one in reader.differences(writer)]
    return "; ".join(found) or YES


def kinds(answer: str) -> list[str]:
    return [] if answer == YES else [one.split()[0] for one in answer.split("; ")]


@pytest.mark.parametrize("case", PAIRS, ids=name)
def test_a_pair_is_answered_at_every_level(case: Case) -> None:
    skip_without_compiler(case)
    old, new = case.schema("old"), case.schema("new")
    backward, forward = case.words["backward"], case.words["forward"]
    assert told(new, old) == backward
    assert told(old, new) == forward
    expected = {
        CompatibilityLevel.NONE: [],
        CompatibilityLevel.BACKWARD: kinds(backward),
        CompatibilityLevel.FORWARD: kinds(forward),
        CompatibilityLevel.FULL: kinds(backward) + kinds(forward),
    }
    for level, wanted in expected.items():
        texts = pair_reasons(level, new, old)
        assert [_KIND.findall(text) for text in texts] == [[kind] for kind in wanted], level
        for text in texts:
            assert "{0}" not in text
            assert "new schema" in text or "old schema" in text or "NAME_MISMATCH" in text


@pytest.mark.parametrize("case", HISTORIES, ids=name)
def test_a_history_is_looked_at_as_far_as_the_level_says(case: Case) -> None:
    skip_without_compiler(case)
    history = [
        Earlier(version=place, definition=case.schema(role))
        for place, role in enumerate(("first", "second"), 1)
    ]
    for level in CompatibilityLevel:
        answer = case.words.get(level.lower(), YES if level is CompatibilityLevel.NONE else None)
        if answer is None:
            continue
        texts = reasons(level, case.schema("new"), history)
        version, _, wanted = ("", "", YES) if answer == YES else answer.partition(" ")
        assert [kind for text in texts for kind in _KIND.findall(text)] == kinds(wanted), level
        assert (f"{{oldSchemaVersion: {version}}}" in texts) == (answer != YES)


def test_the_table_is_as_large_as_promised_and_no_pair_stands_twice() -> None:
    assert len(PAIRS) >= 200
    assert min(Counter(case.kind for case in PAIRS).values()) >= 50
    assert [title for title, count in Counter(map(name, CASES)).items() if count > 1] == []
    for case in HISTORIES:
        transitive = [level for level in case.words if level.endswith("_transitive")]
        assert transitive, case.title
