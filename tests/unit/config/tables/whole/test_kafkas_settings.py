"""The tables hold every setting of a broker of Kafka 3.9 on ZooKeeper and of 4.3, as Kafka does."""

import re
from pathlib import Path

import pytest

import penstock
from penstock.config.broker import BROKER_SETTINGS, DYNAMIC_ONLY, TABLES
from penstock.config.group import GROUP_SETTINGS
from penstock.config.settings import Setting, SettingTable, Value
from penstock.config.topic import BROKER_NAMES, TOPIC_SETTINGS

# The settings the tutorials name, with the defaults they print where those still hold.
TUTORIAL: dict[str, Value] = {
    "advertised.host.name": None,
    "advertised.listeners": None,
    "advertised.port": None,
    "authorizer.class.name": "",
    "auto.create.topics.enable": True,
    "auto.leader.rebalance.enable": True,
    "background.threads": 10,
    "broker.id.generation.enable": True,
    "broker.rack": None,
    "compression.type": "producer",
    "connections.max.idle.ms": 600_000,
    "controlled.shutdown.enable": True,
    "controlled.shutdown.max.retries": 3,
    "controlled.shutdown.retry.backoff.ms": 5000,
    "controller.socket.timeout.ms": 30_000,
    "leader.imbalance.check.interval.seconds": 300,
    "leader.imbalance.per.broker.percentage": 10,
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    ),
    "log.cleaner.backoff.ms": 15_000,
    "log.cleaner.dedupe.buffer.size": 134_217_728,
    "log.cleaner.delete.retention.ms": 86_400_000,
    "log.cleaner.enable": True,
    "log.cleaner.io.buffer.size": 524_288,
    "log.cleaner.io.max.bytes.per.second": 1.7976931348623157e308,
    "log.cleaner.min.cleanable.ratio": 0.5,
    "log.cleaner.min.compaction.lag.ms": 0,
    "log.cleaner.threads": 1,
    "log.cleanup.policy": ("delete",),
    "log.dir": ("/tmp/kafka-logs",),
    "log.dirs": None,
    "log.flush.interval.messages": 2**63 - 1,
    "log.flush.interval.ms": None,
    "log.flush.offset.checkpoint.interval.ms": 60_000,
    "log.flush.scheduler.interval.ms": 2**63 - 1,
    "log.retention.bytes": -1,
    "log.retention.hours": 168,
    "log.retention.minutes": None,
    "log.retention.ms": None,
    "log.roll.hours": 168,
    "log.roll.ms": None,
    "log.segment.bytes": 1 << 30,
    "log.segment.delete.delay.ms": 60_000,
    "min.insync.replicas": 1,
    "num.io.threads": 8,
    "num.network.threads": 3,
    "num.replica.fetchers": 1,
    "port": 9092,
    "replica.fetch.wait.max.ms": 500,
    "replica.high.watermark.checkpoint.interval.ms": 5000,
    "replica.lag.time.max.ms": 30_000,
    "replica.socket.receive.buffer.bytes": 65_536,
    "replica.socket.timeout.ms": 30_000,
    "socket.receive.buffer.bytes": 102_400,
    "socket.request.max.bytes": 104_857_600,
    "socket.send.buffer.bytes": 102_400,
    "unclean.leader.election.enable": False,
    "zookeeper.connect": None,
}

# All that `kafka-configs --all` of Kafka 4.3 shows for a topic.
TOPIC_NAMES = """
    cleanup.policy compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level delete.retention.ms file.delete.delay.ms flush.messages flush.ms
    follower.replication.throttled.replicas index.interval.bytes
    leader.replication.throttled.replicas local.retention.bytes local.retention.ms
    max.compaction.lag.ms max.message.bytes message.timestamp.after.max.ms
    message.timestamp.before.max.ms message.timestamp.type min.cleanable.dirty.ratio
    min.compaction.lag.ms min.insync.replicas preallocate remote.log.copy.disable
    remote.log.delete.on.disable remote.storage.enable retention.bytes retention.ms segment.bytes
    segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable
"""

# Those of topics that check schemas: Confluent's and ours.
VALIDATION_NAMES = """
    confluent.key.schema.validation confluent.key.subject.name.strategy
    confluent.value.schema.validation confluent.value.subject.name.strategy
    penstock.key.validation penstock.validation.action penstock.validation.dlq.topic
    penstock.validation.when.away penstock.value.validation
"""

GROUP_NAMES = """
    consumer.assignment.interval.ms consumer.heartbeat.interval.ms consumer.session.timeout.ms
    share.assignment.interval.ms share.auto.offset.reset share.delivery.count.limit
    share.heartbeat.interval.ms share.isolation.level share.partition.max.record.locks
    share.record.lock.duration.ms share.renew.acknowledge.enable share.session.timeout.ms
    streams.assignment.interval.ms streams.heartbeat.interval.ms
    streams.initial.rebalance.delay.ms streams.num.standby.replicas streams.session.timeout.ms
"""

# What a running Kafka 4.3 changes for the cluster, of the features we have.
CLUSTER_WIDE = """
    background.threads compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level config.providers follower.replication.throttled.rate
    group.consumer.assignment.interval.ms group.coordinator.cached.buffer.max.bytes
    group.share.assignment.interval.ms group.streams.assignment.interval.ms
    leader.replication.throttled.rate log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size
    log.cleaner.delete.retention.ms log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
    log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms
    log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleaner.threads
    log.cleanup.policy log.flush.interval.messages log.flush.interval.ms log.index.interval.bytes
    log.index.size.max.bytes log.local.retention.bytes log.local.retention.ms
    log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms
    log.message.timestamp.type log.preallocate log.retention.bytes log.retention.ms
    log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms
    max.connection.creation.rate max.connections max.connections.per.ip
    max.connections.per.ip.overrides message.max.bytes metric.reporters min.insync.replicas
    num.io.threads num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers
    producer.id.expiration.ms replica.alter.log.dirs.io.max.bytes.per.second
    share.coordinator.cached.buffer.max.bytes transaction.partition.verification.enable
    unclean.leader.election.enable
"""

SOURCE = Path(penstock.__file__).parent

# Settings that act under another name: rules.py or topic.py turns them into another setting, or
# their reader puts the name together or asks LogConfig a question.
BY_RULE = {
    "advertised.host.name",
    "advertised.port",
    "broker.id.generation.enable",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "delegation.token.master.key",
    "host.name",
    "log.dir",
    "log.message.timestamp.difference.max.ms",
    "log.retention.hours",
    "log.retention.minutes",
    "log.roll.hours",
    "log.roll.jitter.hours",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "node.id",
    "port",
    "reserved.broker.max.id",
    "security.inter.broker.protocol",
    "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.keystore.type",
    "zookeeper.ssl.truststore.password",
    "zookeeper.ssl.truststore.type",
}

# Ours, and those of 3.9 that 4.3 no longer has.
CLUSTER_WIDE_BEYOND = {
    "flush.on.ack",
    "log.message.downconversion.enable",
    "log.message.timestamp.difference.max.ms",
}


@pytest.mark.parametrize("name", TUTORIAL)
def test_a_setting_of_the_tutorials_has_the_default_they_print(name: str) -> None:
    assert BROKER_SETTINGS[name].default == TUTORIAL[name]


def test_nothing_listens_beyond_this_machine_by_default() -> None:
    assert BROKER_SETTINGS["listeners"].default == ("PLAINTEXT://127.0.0.1:9092",)


def test_no_setting_stands_in_two_tables() -> None:
    names = [setting.name for table in TABLES for setting in table.SETTINGS]
    assert sorted(names) == sorted(set(names))
    assert len(names) == len(BROKER_SETTINGS)


def test_the_settings_of_topics_and_groups_are_complete() -> None:
    shown = {name for name, setting in TOPIC_SETTINGS.items() if not setting.internal}
    beyond = {*VALIDATION_NAMES.split(), "message.downconversion.enable"}
    assert shown == {*TOPIC_NAMES.split()} | beyond
    assert set(GROUP_SETTINGS) == set(GROUP_NAMES.split())


def test_what_can_change_for_the_cluster_is_what_kafka_can_change() -> None:
    changing = {n for n, setting in BROKER_SETTINGS.items() if setting.dynamic == "cluster-wide"}
    assert changing == set(CLUSTER_WIDE.split()) | CLUSTER_WIDE_BEYOND
    assert changing > DYNAMIC_ONLY


@pytest.mark.parametrize(
    "name",
    ["process.roles", "controller.quorum.voters", "metadata.log.dir", "remote.log.reader.threads"],
)
def test_settings_of_features_we_cannot_have_are_unknown(name: str) -> None:
    assert name not in BROKER_SETTINGS


def every_setting() -> list[Setting]:
    tables = (BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS)
    return [setting for table in tables for setting in table.values()]


@pytest.mark.parametrize("setting", every_setting(), ids=lambda setting: setting.name)
def test_a_default_is_one_of_the_allowed_values_and_a_text_is_a_sentence(setting: Setting) -> None:
    if setting.valid is not None and setting.default is not None:
        setting.valid.check(setting, setting.default, None)
    assert setting.text.endswith(".") and setting.text[0].isupper()


def test_a_topic_setting_and_the_brokers_of_the_same_meaning_agree() -> None:
    for name, broker in BROKER_NAMES.items():
        ours, theirs = TOPIC_SETTINGS[name], BROKER_SETTINGS[broker]
        assert ours.type == theirs.type, name
        if theirs.default is not None:
            assert ours.default == theirs.default, name


def acting(table: SettingTable) -> set[str]:
    """The settings of a table that are said to change something."""
    return {name for name, setting in table.items() if setting.acts}


def test_a_row_says_whether_its_setting_acts() -> None:
    assert BROKER_SETTINGS["listeners"].acts and not BROKER_SETTINGS["num.io.threads"].acts
    assert TOPIC_SETTINGS["retention.ms"].acts
    assert not TOPIC_SETTINGS["remote.storage.enable"].acts


def readers() -> str:
    """All code that could obey a setting: everything but the settings themselves."""
    rooms = (path for path in SOURCE.iterdir() if path.is_dir() and path.name != "config")
    files = (file for room in rooms for file in room.rglob("*.py"))
    return "\n".join(f.read_text() for f in files if f.name != "storage/log/config.py")


def test_a_setting_that_is_said_to_act_is_read_by_somebody() -> None:
    code = readers()
    words = set(re.findall(r"\w+", code))
    by_topics = {BROKER_NAMES[name] for name in acting(TOPIC_SETTINGS) if name in BROKER_NAMES}
    silent = [
        name
        for name in sorted(acting(BROKER_SETTINGS) - by_topics)
        if BROKER_SETTINGS[name].attribute not in words and f'"{name}"' not in code
    ]
    silent += [
        name
        for name in sorted(acting(TOPIC_SETTINGS))
        if TOPIC_SETTINGS[name].attribute not in words
    ]
    assert [name for name in silent if name not in BY_RULE] == []
