"""Consumer groups in our `__consumer_offsets` in Apache Kafka's hands, and Kafka's in ours."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.integration.groups848.live_history import LiveRig
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.java import run_java
from tests.support.outside import needs
from tests.support.processes import ServerProcess
from tests.support.waiting import eventually
from tests.unit.groups.consumer_rig import ClassicConsumer, Consumer

from penstock.protocol.messages.consumer_group_describe import DescribedGroup
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

OFFSETS = "__consumer_offsets"
GROUP = "readers"
SETTINGS = {"offsets.topic.num.partitions": "1", "group.consumer.assignment.interval.ms": "0"}
KINDS = {3, 5, 6, 7, 8, 16}


def rig_of(server: ServerProcess) -> LiveRig:
    rig = LiveRig(server.port, GROUP)
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    eventually(lambda: rig.ask(find, 4).coordinators[0].error_code == 0, timeout_s=120)
    eventually(lambda: rig.described() is not None, timeout_s=120)
    return rig


def fill(rig: LiveRig) -> list[Any]:
    """A static member, one with a pattern, and a classic one, of which somebody must give up."""
    rig.make_topics(t=6)
    members = [
        Consumer(rig, "a", ["t"], instance_id="one"),
        Consumer(rig, "b", ["t"], pattern=r"readers\.n.*", assignor="range"),
        ClassicConsumer(rig, "c", ["t"]),
    ]
    first, second, classic = members
    assert first.join().error_code == 0
    first.settle()
    assert second.join().error_code == 0
    first.beat()
    first.settle()
    first.beat()
    second.beat()
    second.settle()
    classic.steps(3)
    first.beat()
    return members


def described(rig: LiveRig) -> Any:
    """The group, as far as it does not depend on the order of members."""
    group = rig.described()
    assert isinstance(group, DescribedGroup), group
    members = sorted(group.members, key=lambda member: member.client_id)
    return (
        (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name),
        [
            (
                member.client_id,
                member.instance_id,
                member.member_epoch,
                member.member_type,
                member.subscribed_topic_names,
                member.subscribed_topic_regex,
                [t.partitions for t in member.assignment.topic_partitions],
                [t.partitions for t in member.target_assignment.topic_partitions],
            )
            for member in members
        ],
    )


def copy_partition(source: Path, target: Path) -> None:
    """Replace the target's files, except the one that holds its topic id."""
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in source.iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, target / path.name)


def test_kafkas_decoder_reads_what_we_store(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, SETTINGS) as broker:
        broker.start()
        fill(rig_of(broker))
        broker.stop()
        segment = next(broker.partition_dir(OFFSETS).glob("*.log"))
        tool = "org.apache.kafka.tools.DumpLogSegments"
        jars = f"{needs(CURRENT)}/*"
        printed = run_java(jars, tool, "--offsets-decoder", "--files", str(segment))
    read = [
        (json.loads(key), json.loads(payload))
        for key, payload in re.findall(r"key: (\{.*?\}) payload: (\{.*)", printed)
    ]
    assert {int(key["type"]) for key, _ in read} == KINDS
    members = {key["data"]["memberId"]: value["data"] for key, value in read if key["type"] == "5"}
    assert members["a"]["instanceId"] == "one"
    assert members["b"]["serverAssignor"] == "range"
    assert [m["classicMemberMetadata"] is None for m in members.values()] == [True, True, False]
    patterns = [key["data"]["regularExpression"] for key, _ in read if key["type"] == "16"]
    assert patterns == [r"readers\.n.*"]


@pytest.mark.parametrize("from_kafka", [True, False])
def test_a_group_goes_on_when_its_log_moves(tmp_path: Path, from_kafka: bool) -> None:
    """From Apache Kafka to us, and from us to Apache Kafka.

    The topic has another id there, so nobody can tell what members have of it; all else is found.
    """
    kafka = KafkaProcess(needs(CURRENT), tmp_path / "kafka", SETTINGS)
    ours = BrokerProcess(tmp_path / "ours", SETTINGS)
    with kafka, ours:
        source: KafkaProcess | BrokerProcess = kafka if from_kafka else ours
        target: KafkaProcess | BrokerProcess = ours if from_kafka else kafka
        target.start()
        rig_of(target).make_topics(t=6)
        target.stop()
        source.start()
        fill(rig_of(source))
        expected = described(rig_of(source))
        source.stop()
        copy_partition(source.partition_dir(OFFSETS), target.partition_dir(OFFSETS))
        target.start()
        rig = rig_of(target)
        found = eventually(lambda: described(rig), timeout_s=120)
    assert found[0] == expected[0]
    assert [member[:6] for member in found[1]] == [member[:6] for member in expected[1]]
