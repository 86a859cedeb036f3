"""What a worker refuses of a connector's configuration before anything is written."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.connect_script import masked

from penstock.connect.herder.refusals import RequestRefused
from penstock.connect.herder.validation import ConnectorChecks
from penstock.connect.settings import WorkerSettings
from penstock.errors import ConfigError

POLICY = "connector.client.config.override.policy"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
WORKER = {
    "bootstrap.servers": "b:9092",
    "group.id": "g",
    "key.converter": STRINGS,
    "value.converter": STRINGS,
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}
GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "connect" / "validate.json"
SOURCE = {"name": "s", "connector.class": "FileStreamSource", "file": "f", "topic": "t"}


def errors(config: dict[str, str], **worker: str) -> dict[str, tuple[str, ...]]:
    settings = WorkerSettings.distributed({**WORKER, **worker})
    return ConnectorChecks(settings).checked({**SOURCE, **config}).errors()


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text()))
def test_validation_answers_as_apaches_worker_did(case: dict[str, Any], tmp_path: Path) -> None:
    checks = ConnectorChecks(WorkerSettings.distributed(WORKER))
    told = json.loads(json.dumps(checks.document(case["plugin"], case["config"])))
    assert masked(told, tmp_path) == case["answer"]


def test_a_policy_names_what_a_connector_may_not_change() -> None:
    acks, login = "producer.override.acks", "producer.override.sasl.jaas.config"
    config = {acks: "1", login: "x"}
    assert errors(config) == {}
    sentence = "The 'Principal' policy does not allow 'acks' to be overridden in the connector"
    refused = errors(config, **{POLICY: "Principal"})
    assert list(refused) == [acks] and refused[acks][0].startswith(sentence)
    assert sorted(errors(config, **{POLICY: "None"})) == [acks, login]


def test_a_lane_that_there_is_not_or_that_cannot_be_taken_is_refused() -> None:
    lane = "penstock.lane"
    assert errors({lane: "columnar"}) == {}
    (sentence,) = errors({lane: "fast"})[lane]
    assert "auto, columnar, ordinary" in sentence
    needs_records = {lane: "columnar", "transforms": "t", "transforms.t.type": "x:Y"}
    (sentence,) = errors(needs_records)[lane]
    assert sentence == "penstock.lane=columnar is not possible: transforms take single records."


def test_rules_for_new_topics_are_looked_at() -> None:
    config = {"topic.creation.default.partitions": "1"}
    (sentence,) = errors(config)["topic.creation.groups"]
    assert "topic.creation.default.replication.factor" in sentence
    assert errors(config | {"topic.creation.default.replication.factor": "1"}) == {}


def test_a_converter_that_there_is_not_is_refused() -> None:
    found = errors({"key.converter": "nope", "header.converter": "nope"})
    for name in ("key.converter", "header.converter"):
        assert found[name] == (
            f"Invalid value nope for configuration {name}: Class nope could not be found.",
        )


def test_words_are_told_in_kafkas_order_and_may_be_written_large() -> None:
    assert errors({"exactly.once.support": "REQUESTED", "transaction.boundary": "Poll"}) == {}
    found = errors({"transaction.boundary": "hm", "offsets.storage.topic": ""})
    assert found["transaction.boundary"][0].endswith(
        "String must be one of (case insensitive): INTERVAL, POLL, CONNECTOR"
    )
    assert found["offsets.storage.topic"][0].endswith("String must be non-empty")


def test_dead_letters_may_not_go_where_the_connector_reads() -> None:
    sink = {"connector.class": "FileStreamSink", "errors.deadletterqueue.topic.name": "abc"}
    (sentence,) = errors({**sink, "topics": "x,abc"})["topics"]
    assert "'abc' may not be included in the list of topics ('topics=[x, abc]')" in sentence
    (sentence,) = errors({**sink, "topics.regex": "a.*"})["topics.regex"]
    assert "may not be matched by the regex for the topics ('topics.regex=a.*')" in sentence
    assert errors({**sink, "topics": "x"}) == {}


def test_what_config_providers_put_in_is_looked_at_and_not_told(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("lines=7\nword=s3cret\n")
    worker = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    good, bad = f"${{file:{secrets}:lines}}", f"${{file:{secrets}:word}}"
    assert errors({"batch.size": good, "tasks.max": good}, **worker) == {}
    settings = WorkerSettings.distributed({**WORKER, **worker})
    checks = ConnectorChecks(settings)
    told = checks.document("FileStreamSource", {**SOURCE, "batch.size": bad, "topic": bad})
    assert "s3cret" not in json.dumps(told)
    by_name = {one["value"]["name"]: one["value"] for one in told["configs"]}
    assert by_name["topic"]["value"] == bad
    assert by_name["batch.size"]["errors"] == [
        "Invalid value [hidden] for configuration batch.size: Not a number of type INT"
    ]
    assert checks.resolved({"x": good})["x"] == "7"
    with pytest.raises(ConfigError, match="nowhere"):
        errors({"batch.size": "${file:/nowhere:x}"}, **worker)


def test_a_version_that_a_plug_in_does_not_have_is_refused() -> None:
    asked = {
        "connector.plugin.version": "[4,5)",
        "key.converter": STRINGS,
        "key.converter.plugin.version": "latest",
        "transforms": "t",
        "transforms.t.type": "org.apache.kafka.connect.transforms.HoistField$Value",
        "transforms.t.plugin.version": "[1,)",
        "transforms.t.field": "line",
    }
    assert errors(asked) == {}
    refused = errors({name: "9" if "version" in name else text for name, text in asked.items()})
    assert sorted(refused) == sorted(name for name in asked if "version" in name)
    assert refused["connector.plugin.version"] == (
        "Plugin org.apache.kafka.connect.file.FileStreamSourceConnector not found that matches "
        "the version range [9,9], available versions: [4.3.1]",
    )
    assert "HoistField$Value not found" in refused["transforms.t.plugin.version"][0]
    with pytest.raises(RequestRefused, match="Unbounded range"):
        errors({"connector.plugin.version": "[1,"})


def test_definitions_are_those_of_the_version_that_is_asked_for() -> None:
    checks = ConnectorChecks(WorkerSettings.distributed(WORKER))
    newest = checks.definitions("FileStreamSource", "latest")
    assert newest == checks.definitions("FileStreamSource") != []
    with pytest.raises(RequestRefused, match=r"the version range \[9,9\]") as refused:
        checks.definitions("FileStreamSource", "9")
    assert refused.value.status == 400
