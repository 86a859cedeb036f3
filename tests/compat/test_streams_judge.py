"""Streams against its judge: Kafka Streams' TopologyTestDriver answers the same random scripts."""

from pathlib import Path

import pytest
from tests.support.streams_judge import described_by_judge, judged
from tests.support.streams_scripts import (
    NOT_DESCRIBED,
    TOPOLOGIES,
    built,
    played,
    random_script,
    with_headers,
)

SCRIPTS, SCRIPTS_LONG = 3, 500


@pytest.mark.kafka
def test_all_operators_give_the_records_tombstones_and_times_of_kafka_streams(
    tmp_path: Path,
) -> None:
    scripts = [(name, random_script(name, seed)) for name in TOPOLOGIES for seed in range(SCRIPTS)]
    answers = judged(scripts, tmp_path / "scripts.txt")
    for (name, script), answer in zip(scripts, answers, strict=True):
        assert played(name, script) == answer, (name, script)


@pytest.mark.kafka
def test_all_operators_give_the_headers_of_kafka_streams(tmp_path: Path) -> None:
    scripts = [(n, with_headers(random_script(n, seed))) for n in TOPOLOGIES for seed in (71, 72)]
    answers = judged(scripts, tmp_path / "scripts.txt")
    for (name, script), answer in zip(scripts, answers, strict=True):
        assert played(name, script) == answer, (name, script)


@pytest.mark.kafka
def test_topologies_are_described_in_the_words_of_kafka_streams(tmp_path: Path) -> None:
    names = sorted(set(TOPOLOGIES) - NOT_DESCRIBED)
    texts = described_by_judge(names, tmp_path / "names.txt")
    for name, text in zip(names, texts, strict=True):
        assert built(name).describe() == text


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_an_operator_agrees_on_many_scripts(name: str, tmp_path: Path) -> None:
    scripts = [(name, random_script(name, seed)) for seed in range(SCRIPTS_LONG)]
    answers = judged(scripts, tmp_path / "scripts.txt")
    differing = [
        script
        for (_, script), answer in zip(scripts, answers, strict=True)
        if played(name, script) != answer
    ]
    assert differing == []
