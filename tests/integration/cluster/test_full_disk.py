"""A broker of a cluster whose disk is full: as a follower it lags, as a leader it says so."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.cluster.writing import QUIET, Stream, read_all
from tests.support.broker import BrokerProcess
from tests.support.cluster import Cluster
from tests.support.disk import leave_no_byte, small_disk
from tests.support.processes import ROOT, python
from tests.support.waiting import eventually

from penstock.replica.state_log import partition_for

DISK_BYTES = 48_000_000
LAG_MS_MAX = 3000
SMALL = 2  # The broker on the small disk.


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("small") / "disk"
    with small_disk(place, size_bytes=DISK_BYTES) as directory:
        yield directory


@pytest.fixture(scope="module")
def cornered(disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers, one of them on a small disk."""
    settings = {"replica.lag.time.max.ms": str(LAG_MS_MAX), "log.segment.bytes": "2000000"}
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), settings=settings)
    small = cluster.brokers[SMALL]
    small.settings["log.dirs"] = str(disk / "data")
    small.data = disk / "data"
    with cluster:
        yield cluster
        assert [broker.tracebacks() for broker in cluster.brokers] == [{}, {}, {}]


@pytest.fixture
def small(cornered: Cluster, disk: Path) -> Iterator[BrokerProcess]:
    """The broker on the small disk, which has room before and after a test."""
    yield cornered.brokers[SMALL]
    (disk / "ballast").unlink(missing_ok=True)


def create(cluster: Cluster, name: str, replicas: list[int]) -> str:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic(name, 1, replica_assignment=[replicas])
    for made in admin.create_topics([topic], operation_timeout=30).values():
        made.result()
    cluster.until_in_sync(name, len(replicas))
    eventually(lambda: cluster.partition(name).leader_id == replicas[0], timeout_s=120)
    return name


def tool(cluster: Cluster, words: str, *more: object, code: int = 0) -> str:
    command = [python(), "-m", "penstock.cli.main", *words.split()]
    command += ["--bootstrap-server", cluster.bootstrap, *(str(word) for word in more)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == code, done
    return " ".join(done.stdout.split())


def told(cluster: Cluster, topic: str, acks: str) -> str | None:
    """Produce one record that is not sent again; the name of the error, None: it was taken."""
    heard: list[KafkaError | None] = []
    settings = {"bootstrap.servers": cluster.bootstrap, "retries": 0, "acks": acks, **QUIET}
    producer = Producer(settings)
    producer.produce(topic, b"x" * 1000, on_delivery=lambda error, _: heard.append(error))
    assert producer.flush(120) == 0
    return None if heard[0] is None else heard[0].name()


def test_a_follower_without_room_leaves_the_in_sync_set_and_catches_up(
    cornered: Cluster, small: BrokerProcess, disk: Path
) -> None:
    topic = create(cornered, "followed", [0, 1, SMALL])
    with Stream(cornered.bootstrap, topic) as stream:
        stream.until_more()
        leave_no_byte(disk)
        eventually(lambda: SMALL not in cornered.partition(topic).isr_nodes, timeout_s=120)
        stream.until_more(200)
        assert f"The disk under {small.data} is full" in small.log
        assert f"bytes to {topic}-0: the disk under {small.data} is full" in small.log
        said = tool(cornered, "cluster status", "--check", code=1)
        assert f"broker {SMALL}: the disk under {small.data} is full" in said
        assert f"{topic}-0" in said

        (disk / "ballast").unlink()
        cornered.until_in_sync(topic)
        stream.until_more()
    assert stream.failed == []
    assert [int(value) for value in read_all(cornered.bootstrap, topic)] == stream.acked
    assert small.answers()


def test_a_follower_killed_without_room_starts_and_catches_up(
    cornered: Cluster, small: BrokerProcess, disk: Path
) -> None:
    topic = create(cornered, "killed", [0, 1, SMALL])
    with Stream(cornered.bootstrap, topic) as stream:
        stream.until_more()
        leave_no_byte(disk)
        small.kill()
        leave_no_byte(disk)
        small.start(timeout_s=120)
        stream.until_more(200)
        (disk / "ballast").unlink()
        cornered.until_in_sync(topic)
    assert stream.failed == []
    assert [int(value) for value in read_all(cornered.bootstrap, topic)] == stream.acked


@pytest.mark.parametrize("acks", ["1", "all"])
def test_a_leader_without_room_says_so_until_there_is_some(
    cornered: Cluster, small: BrokerProcess, disk: Path, acks: str
) -> None:
    topic = create(cornered, f"led-{acks}", [SMALL, 0, 1])
    assert told(cornered, topic, acks) is None
    leave_no_byte(disk)
    eventually(
        lambda: told(cornered, topic, acks) == "KAFKA_STORAGE_ERROR",
        timeout_s=120,
        what="an answer that names the disk",
    )
    assert cornered.partition(topic).leader_id == SMALL  # The disk is full, and has not failed.
    (disk / "ballast").unlink()
    eventually(lambda: told(cornered, topic, acks) is None, timeout_s=120)


def test_a_marker_that_finds_no_room_is_written_when_there_is_some(
    cornered: Cluster, small: BrokerProcess, disk: Path
) -> None:
    topic = create(cornered, "marked", [SMALL, 0, 1])
    cornered.until_in_sync(topic)
    producer = Producer(
        {"bootstrap.servers": cornered.bootstrap, "transactional.id": "elsewhere", **QUIET}
    )
    producer.init_transactions(60)
    cornered.until_in_sync("__transaction_state")
    partition = partition_for("elsewhere", 5)
    if cornered.partition("__transaction_state", partition).leader_id == SMALL:
        small.kill()
        eventually(
            lambda: cornered.partition("__transaction_state", partition).leader_id != SMALL,
            timeout_s=120,
        )
        small.start(timeout_s=120)
        cornered.until_in_sync("__transaction_state")
        cornered.until_in_sync(topic)
    if cornered.partition(topic).leader_id != SMALL:
        tool(
            cornered,
            "leader-election --election-type preferred",
            *("--topic", topic, "--partition", 0),
        )
        eventually(lambda: cornered.partition(topic).leader_id == SMALL, timeout_s=120)
    producer.begin_transaction()
    producer.produce(topic, b"decided")
    assert producer.flush(120) == 0
    leave_no_byte(disk)
    eventually(lambda: told(cornered, topic, "1") == "KAFKA_STORAGE_ERROR", timeout_s=120)
    producer.commit_transaction(60)
    assert b"decided" not in read_all(cornered.bootstrap, topic, committed_only=True)
    (disk / "ballast").unlink()
    eventually(
        lambda: b"decided" in read_all(cornered.bootstrap, topic, committed_only=True),
        timeout_s=120,
    )


def test_deleting_a_topic_makes_room_at_once_in_a_cluster(
    cornered: Cluster, small: BrokerProcess, disk: Path
) -> None:
    wanted = create(cornered, "wanted", [SMALL, 0, 1])
    large = create(cornered, "large", [SMALL])
    producer = Producer({"bootstrap.servers": cornered.bootstrap, **QUIET})
    for _ in range(100):
        producer.produce(large, bytes(100_000))
    assert producer.flush(120) == 0
    leave_no_byte(disk)
    eventually(lambda: told(cornered, wanted, "all") == "KAFKA_STORAGE_ERROR", timeout_s=120)
    tool(cornered, "topics", "--delete", "--topic", large)
    eventually(lambda: told(cornered, wanted, "all") is None, timeout_s=120)


def test_a_replica_that_could_not_even_be_made_comes_once_there_is_room(
    cornered: Cluster, small: BrokerProcess, disk: Path
) -> None:
    small.stop()
    small.settings["log.dir.reserve.bytes"] = "0"
    small.start(timeout_s=120)
    try:
        leave_no_byte(disk)
        admin = AdminClient({"bootstrap.servers": cornered.bootstrap})
        wanted = NewTopic("unmade", 1, replica_assignment=[[0, 1, SMALL]])
        for made in admin.create_topics([wanted]).values():
            made.result()
        with Stream(cornered.bootstrap, "unmade") as stream:
            stream.until_more()
            eventually(lambda: SMALL not in cornered.partition("unmade").isr_nodes, timeout_s=120)
            assert not (small.data / "unmade-0").exists()
            (disk / "ballast").unlink()
            cornered.until_in_sync("unmade")
        assert stream.failed == []
    finally:
        del small.settings["log.dir.reserve.bytes"]
        small.kill()
        (disk / "ballast").unlink(missing_ok=True)
        small.start(timeout_s=120)
