"""What a worker refuses of a connector's configuration before anything is written."""

from penstock.connect.herder.validation import ConnectorChecks
from penstock.connect.settings import WorkerSettings

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
SOURCE = {"name": "s", "connector.class": "FileStreamSource", "file": "f", "topic": "t"}


def errors(config: dict[str, str], **worker: str) -> dict[str, tuple[str, ...]]:
    settings = WorkerSettings.distributed({**WORKER, **worker})
    return ConnectorChecks(settings).checked({**SOURCE, **config}).errors()


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
