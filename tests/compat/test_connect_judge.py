"""Connect against its judge: Kafka's own classes answer the same random cases."""

import json
from pathlib import Path

import pytest
from tests.support.connect_cases import all_cases, answered, known
from tests.support.connect_judge import judged

CASES, CASES_LONG = 5, 400
FIRST_SEED = 10_000  # Other ones than those whose answers are kept.


def differing(count: int, file: Path) -> list[str]:
    cases = all_cases(count, FIRST_SEED)
    answers = judged(cases, file)
    return [
        json.dumps(case)
        for case, answer in zip(cases, answers, strict=True)
        if json.loads(json.dumps(answered(case))) != known(answer)
    ]


@pytest.mark.kafka
def test_transforms_predicates_and_converters_answer_as_kafkas_do(tmp_path: Path) -> None:
    assert differing(CASES, tmp_path / "cases.txt") == []


@pytest.mark.kafka
@pytest.mark.long
def test_they_agree_on_many_cases(tmp_path: Path) -> None:
    assert differing(CASES_LONG, tmp_path / "cases.txt") == []
