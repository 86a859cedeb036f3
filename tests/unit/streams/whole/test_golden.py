"""The golden answers of Kafka Streams' TopologyTestDriver, on every machine, without Java."""

import json

import pytest
from tests.support.processes import ROOT
from tests.support.streams_scripts import NOT_DESCRIBED, TOPOLOGIES, built, played

GOLDEN = json.loads((ROOT / "tests" / "golden" / "streams" / "answers.json").read_text())


def test_every_topology_has_a_golden_answer_and_a_golden_description() -> None:
    assert {case["topology"] for case in GOLDEN["cases"] if case["answers"]} == set(TOPOLOGIES)
    assert set(GOLDEN["descriptions"]) == set(TOPOLOGIES) - NOT_DESCRIBED


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_test_driver_answers_as_kafka_streams_did(name: str) -> None:
    for case in GOLDEN["cases"]:
        if case["topology"] == name:
            script = [tuple(line.split(" ")) for line in case["script"]]
            assert played(name, script) == [tuple(answer) for answer in case["answers"]], script


@pytest.mark.parametrize("name", sorted(set(TOPOLOGIES) - NOT_DESCRIBED))
def test_the_description_is_the_one_of_kafka_streams(name: str) -> None:
    assert built(name).describe() == GOLDEN["descriptions"][name]
