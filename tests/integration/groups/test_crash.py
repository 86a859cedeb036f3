"""Offsets outlive the broker: killed under load, stopped while members wait."""

import os
import threading

from tests.integration.groups.lab import Lab, partitions_of, shared
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.processes import HOST
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

from penstock.client.wire.connection import BrokerConnection
from penstock.errors import ErrorCode, PenstockError
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

ROUNDS = 15 if os.environ.get("PENSTOCK_LONG") == "1" else 3
TOPIC = "t"


class Committer:
    """Commits ever larger offsets for one group, and remembers what was acknowledged."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.offset = 0
        self.acked = 0

    def run(self, port: int) -> None:
        """Until the broker is gone."""
        try:
            with BrokerConnection(HOST, port) as wire:
                while True:
                    self._commit(wire)
        except (OSError, PenstockError):
            return

    def _commit(self, wire: BrokerConnection) -> None:
        self.offset += 1
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=self.offset, committed_metadata=""
        )
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
        told = wire.request(OffsetCommitRequest(group_id=self.group, topics=[topic]), 8)
        code = told.topics[0].partitions[0].error_code  # type: ignore[attr-defined]
        if code == ErrorCode.NONE:
            self.acked = self.offset
        else:
            assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def fetched(self, port: int) -> int | None:
        """The offset the broker knows; None while it is loading."""
        with BrokerConnection(HOST, port) as wire:
            group = OffsetFetchRequestGroup(group_id=self.group, topics=None)
            (told,) = wire.request(OffsetFetchRequest(groups=[group]), 8).groups  # type: ignore[attr-defined]
        if told.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return None
        assert told.error_code == 0
        return int(told.topics[0].partitions[0].committed_offset)


def prepare(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC) == 0
    with BrokerConnection(HOST, broker.port) as wire:
        wire.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)


def test_no_acknowledged_offset_is_lost_when_the_broker_is_killed(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    prepare(broker)
    committers = [Committer(f"group {number}") for number in range(4)]
    for _ in range(ROUNDS):
        before = sum(committer.acked for committer in committers)
        threads = [threading.Thread(target=c.run, args=(broker.port,)) for c in committers]
        for thread in threads:
            thread.start()
        eventually(
            lambda start=before: (  # type: ignore[misc]
                sum(c.acked for c in committers) > start + 400 and all(c.acked for c in committers)
            ),
            timeout_s=120,
            what="400 commits",
        )
        broker.kill()
        for thread in threads:
            thread.join(120)
        broker.start()
        for committer in committers:
            found = eventually(lambda c=committer: c.fetched(broker.port), timeout_s=120)  # type: ignore[misc]
            assert committer.acked <= found <= committer.offset


def test_a_broker_stops_at_once_even_if_members_wait_for_a_rebalance(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({"group.initial.rebalance.delay.ms": "120000"})
    prepare(broker)
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=300_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    told: list[int] = []

    def join() -> None:
        with BrokerConnection(HOST, broker.port, timeout_s=120) as wire:
            told.append(wire.request(request, 3).error_code)  # type: ignore[attr-defined]

    thread = threading.Thread(target=join)
    thread.start()
    eventually(lambda: "Preparing to rebalance group g" in broker.log, what="a waiting member")
    assert broker.stop(timeout_s=120) == 0
    thread.join(120)
    assert told == [ErrorCode.NOT_COORDINATOR]


def test_a_group_survives_a_restart_in_good_order(lab: Lab) -> None:
    lab.create(TOPIC, 4)
    members = [lab.member("workers", TOPIC) for _ in range(2)]
    shared(members, partitions_of(TOPIC, 4), shares=[2, 2])
    lab.broker.restart()
    shared(members, partitions_of(TOPIC, 4), shares=[2, 2])
    values = [f"after {number}" for number in range(8)]
    lab.send(TOPIC, values, 4)
    eventually(
        lambda: {value for member in members for value in member.values} == set(values),
        timeout_s=120,
        what="all values",
    )
    assert lab.group_state("workers") == "STABLE"
