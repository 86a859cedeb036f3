"""Every version of every message comes back as it was sent, also those that no oracle has."""

import random

import pytest
from tests.unit.protocol.samples import api_messages, sample

from penstock.protocol.messages import (
    consumer_group_records,
    consumer_protocol,
    control_records,
    group_records,
    share_group_records,
    share_state_records,
    streams_group_records,
    transaction_records,
)
from penstock.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from penstock.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from penstock.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from penstock.protocol.schema import Message

SAMPLES_PER_VERSION = 5


def stored_messages() -> list[type[Message]]:
    modules = (
        consumer_group_records,
        consumer_protocol,
        control_records,
        group_records,
        share_group_records,
        share_state_records,
        streams_group_records,
        transaction_records,
    )
    found = [value for module in modules for value in vars(module).values()]
    return [
        value
        for value in found
        if isinstance(value, type) and issubclass(value, Message) and len(value.versions)
    ]


MESSAGES = [*api_messages(), *stored_messages()]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.__name__)
def test_a_message_comes_back_in_every_version(message: type[Message]) -> None:
    for version in message.versions:
        rng = random.Random(f"{message.__name__} {version}")
        for _ in range(SAMPLES_PER_VERSION):
            original = sample(message, version, rng)
            encoded = original.encode(version)
            assert message.decode(encoded, version) == original
            assert message.decode(memoryview(b"?" + encoded), version, offset=1) == original
            assert original.encode_parts(version) == ([encoded] if encoded else [])


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.__name__)
def test_a_message_of_defaults_comes_back_in_every_version(message: type[Message]) -> None:
    for version in message.versions:
        assert message.decode(message().encode(version), version) == message()


def test_an_epoch_request_of_version_0_has_no_current_epoch_and_of_version_3_a_replica() -> None:
    partition = OffsetForLeaderPartition(partition=1, leader_epoch=2)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic="t", partitions=[partition])]
    )
    topic = "00000001" + "0001" + "74" + "00000001"
    assert request.encode(0).hex() == topic + "00000001" + "00000002"
    assert request.encode(2).hex() == topic + "00000001" + "ffffffff" + "00000002"
    assert request.encode(3).hex() == "fffffffe" + request.encode(2).hex()


def test_an_epoch_answer_of_version_0_has_no_epoch() -> None:
    end = EpochEndOffset(partition=1, end_offset=9)
    response = OffsetForLeaderEpochResponse(
        topics=[OffsetForLeaderTopicResult(topic="t", partitions=[end])]
    )
    topic = "00000001" + "0001" + "74" + "00000001"
    assert response.encode(0).hex() == topic + "0000" + "00000001" + f"{9:016x}"
    assert response.encode(1).hex() == topic + "0000" + "00000001" + "ffffffff" + f"{9:016x}"


def test_a_marker_request_of_version_0_has_plain_lengths() -> None:
    marker = WritableTxnMarker(
        producer_id=5,
        producer_epoch=1,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[2])],
        coordinator_epoch=3,
    )
    expected = "00000001" + f"{5:016x}" + "0001" + "01"
    expected += "00000001" + "0001" + "74" + "00000001" + "00000002" + "00000003"
    assert WriteTxnMarkersRequest(markers=[marker]).encode(0).hex() == expected


@pytest.mark.parametrize(
    "message",
    [AlterReplicaLogDirsRequest, DescribeLogDirsResponse, RenewDelegationTokenRequest],
)
def test_version_0_is_version_1_where_only_throttling_changed(message: type[Message]) -> None:
    original = sample(message, 0, random.Random(1))
    assert original.encode(0) == original.encode(1)
