"""Stored messages: the two bytes in front, and the table of group records."""

import pytest

from penstock.protocol.messages.consumer_protocol import (
    ConsumerProtocolSubscription,
    OwnedPartition,
)
from penstock.protocol.messages.control_records import EndTxnMarker
from penstock.protocol.messages.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from penstock.protocol.primitives import MalformedMessage
from penstock.protocol.stored import group_record_classes, read_prefix

KEY = OffsetCommitKey(group="g", topic="t", partition=3)


def test_a_key_opens_with_the_type_of_its_record() -> None:
    encoded = KEY.to_bytes()
    assert encoded == b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x03"
    assert read_prefix(encoded) == 1
    assert OffsetCommitKey.from_bytes(encoded) == KEY


def test_a_key_of_another_type_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="type 2 is no OffsetCommitKey"):
        OffsetCommitKey.from_bytes(GroupMetadataKey(group="g").to_bytes())


@pytest.mark.parametrize("version", OffsetCommitValue.versions)
def test_a_value_tells_its_own_version(version: int) -> None:
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    encoded = value.to_bytes(version)
    assert read_prefix(encoded) == version
    assert OffsetCommitValue.from_bytes(encoded) == value


def test_a_value_of_an_unknown_version_is_malformed() -> None:
    encoded = OffsetCommitValue().to_bytes(4)
    with pytest.raises(MalformedMessage, match="OffsetCommitValue has no version 99"):
        OffsetCommitValue.from_bytes(b"\x00\x63" + encoded[2:])


@pytest.mark.parametrize("data", [b"", b"\x00"])
def test_fewer_than_two_bytes_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedMessage, match="too few"):
        OffsetCommitValue.from_bytes(data)


def test_a_subscription_from_the_future_is_read_as_far_as_it_is_known() -> None:
    subscription = ConsumerProtocolSubscription(
        topics=["t"],
        user_data=b"u",
        owned_partitions=[OwnedPartition(topic="t", partitions=[1])],
        generation_id=4,
        rack_id="r",
    )
    newest = subscription.to_bytes(3)
    assert ConsumerProtocolSubscription.from_bytes(newest) == subscription
    assert (
        ConsumerProtocolSubscription.from_bytes(b"\x00\x09" + newest[2:] + b"more") == subscription
    )


def test_a_negative_version_and_trailing_bytes_of_a_known_one_are_malformed() -> None:
    newest = ConsumerProtocolSubscription(topics=["t"]).to_bytes(3)
    with pytest.raises(MalformedMessage):
        ConsumerProtocolSubscription.from_bytes(b"\xff\xff" + newest[2:])
    with pytest.raises(MalformedMessage):
        ConsumerProtocolSubscription.from_bytes(newest + b"more")


def test_a_transaction_marker_is_six_bytes() -> None:
    assert EndTxnMarker(coordinator_epoch=7).to_bytes(0) == b"\x00\x00\x00\x00\x00\x07"


def test_every_group_record_type_leads_to_its_key_and_value() -> None:
    known = {n: classes for n in range(30) if (classes := group_record_classes(n))}
    assert len(known) == 22
    for record_type, (key, value) in known.items():
        assert key.record_type == value.record_type == record_type
        assert key.__name__.removesuffix("Key") == value.__name__.removesuffix("Value")
    assert group_record_classes(1) == (OffsetCommitKey, OffsetCommitValue)
    assert group_record_classes(999) is None
