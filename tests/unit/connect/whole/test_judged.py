"""Transforms, predicates and converters give the answers that Kafka's own gave, kept as text.

The cases are random ones of `tests/support/connect_cases.py`; `python -m
tests.support.connect_judge` asks Kafka's classes anew.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.connect_cases import CONFIGS, CONVERTERS, PREDICATES, Case, answered
from tests.support.connect_judge import GOLDEN, GOLDEN_COUNT

SETTINGS = {"definition", "validate"}


def kept(*, settings: bool = False) -> Iterator[tuple[Case, Any]]:
    for line in GOLDEN.read_text().splitlines():
        case, answer = json.loads(line)
        if (case["kind"] in SETTINGS) is settings:
            yield case, answer


def short_name(case: Case) -> str:
    name: str = case["class"].rpartition(".")[2].partition("$")[0]
    return name


NAMES = [*CONFIGS, *PREDICATES, *(name.rpartition(".")[2] for name in CONVERTERS)]


def test_every_class_has_its_cases() -> None:
    counts = Counter(short_name(case) for case, _ in kept())
    assert counts == dict.fromkeys(NAMES, GOLDEN_COUNT)


@pytest.mark.parametrize("name", NAMES)
def test_the_answers_are_those_of_kafka(name: str) -> None:
    for case, answer in kept():
        if short_name(case) == name:
            assert json.loads(json.dumps(answered(case))) == answer, json.dumps(case)


def test_settings_are_defined_and_refused_as_kafka_does() -> None:
    for case, answer in kept(settings=True):
        assert answered(case) == answer, json.dumps(case)
