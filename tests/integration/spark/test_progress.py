"""A running query is a consumer group: the group tool shows its true lag."""

import subprocess
import sys
from pathlib import Path
from threading import Event

import confluent_kafka
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.support.broker import BrokerProcess
from tests.support.spark_queries import Seen, run_available, stream
from tests.support.spark_topics import Topic
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.operations.groups import list_groups


def described(broker: BrokerProcess, group: str) -> dict[int, tuple[str, str, str]]:
    """By partition: current offset, log end offset and lag, as the tool prints them."""
    tool = [sys.executable, "-m", "penstock.cli.main", "consumer-groups"]
    command = [*tool, "--bootstrap-server", broker.address, "--describe", "--group", group]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(group)]
    return {int(line[2]): (line[3], line[4], line[5]) for line in lines}


def groups(broker: BrokerProcess, prefix: str) -> list[str]:
    with Admin({"bootstrap.servers": broker.address}) as admin:
        names = [listed.group_id for listed in list_groups(admin.cluster)]
    return [name for name in names if name.startswith(prefix)]


def test_the_group_tool_shows_the_lag_while_the_query_works_and_when_it_has_caught_up(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, free = Topic(shared_broker.port, "lagging", 2), Event()
    topic.put([b"a"] * 5)
    topic.put([b"a"] * 3, partition=1)
    free.set()

    def work(rows: DataFrame, batch_id: int) -> None:
        rows.collect()
        assert free.wait(60)

    frame = stream(spark, shared_broker, subscribe="lagging", groupIdPrefix="lag-of")
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path))
    query = writer.foreachBatch(work).start()
    try:
        group = f"lag-of-{query.id}"
        caught_up = {0: ("5", "5", "0"), 1: ("3", "3", "0")}
        eventually(lambda: described(shared_broker, group) == caught_up, timeout_s=120, every_s=0.2)
        free.clear()
        topic.put([b"b"] * 7)
        behind = {0: ("5", "12", "7"), 1: ("3", "3", "0")}
        eventually(lambda: described(shared_broker, group) == behind, timeout_s=120, every_s=0.2)
        free.set()
        caught_up = {0: ("12", "12", "0"), 1: ("3", "3", "0")}
        eventually(lambda: described(shared_broker, group) == caught_up, timeout_s=120, every_s=0.2)
    finally:
        free.set()
        query.stop()
    assert groups(shared_broker, "lag-of") == [group]


def test_the_group_may_be_named_and_is_right_after_a_run_of_what_is_available(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic = Topic(shared_broker.port, "named")
    topic.put([b"a"] * 5)
    options = {"subscribe": "named", "kafka.group.id": "nightly"}
    run_available(stream(spark, shared_broker, **options), tmp_path, Seen())
    assert described(shared_broker, "nightly") == {0: ("5", "5", "0")}
    topic.put([b"a"] * 2)
    assert described(shared_broker, "nightly") == {0: ("5", "7", "2")}
    run_available(stream(spark, shared_broker, **options), tmp_path, Seen())
    assert described(shared_broker, "nightly") == {0: ("7", "7", "0")}


def test_what_a_run_of_one_batch_has_read_is_committed_by_the_next(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(shared_broker.port, "single"), Seen()
    topic.put([b"a"] * 5)
    options = {"subscribe": "single", "kafka.group.id": "at-once"}
    frame = stream(spark, shared_broker, **options)
    for start, end in ((0, 5), (5, 7)):
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path))
        query = writer.foreachBatch(seen.take).trigger(once=True).start()
        query.awaitTermination(60)
        assert len(seen.rows) == end
        assert described(shared_broker, "at-once") == {0: (str(start), str(end), str(end - start))}
        topic.put([b"b"] * 2)


def test_nothing_is_committed_where_that_is_not_wanted(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    topic, seen = Topic(shared_broker.port, "secret"), Seen()
    topic.put([b"a"] * 5)
    options = {"subscribe": "secret", "commitProgress": "false", "groupIdPrefix": "secretly"}
    run_available(stream(spark, shared_broker, **options), tmp_path, seen)
    assert len(seen.rows) == 5
    assert groups(shared_broker, "secretly") == []


def test_a_group_with_members_of_its_own_is_named_as_the_reason(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    Topic(shared_broker.port, "shared").put([b"a"])
    settings = {"bootstrap.servers": shared_broker.address, "group.id": "theirs"}
    member = confluent_kafka.Consumer(settings)
    try:
        member.subscribe(["shared"])
        eventually(lambda: member.poll(0.2) or member.assignment(), timeout_s=120)
        options = {"subscribe": "shared", "kafka.group.id": "theirs"}
        with pytest.raises(StreamingQueryException, match="committed to the group 'theirs'"):
            run_available(stream(spark, shared_broker, **options), tmp_path, Seen())
    finally:
        member.close()
