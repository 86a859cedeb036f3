"""Images and their changes survive the way over the wire, and what is not one is refused."""

import zlib
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cluster.image import wire as image_wire
from penstock.cluster.image.image import (
    BrokerImage,
    ClusterImage,
    Endpoint,
    ImageDelta,
    PartitionImage,
    PartitionState,
    TopicImage,
)
from penstock.cluster.image.wire import decode_deltas, decode_image, encode_deltas, encode_image
from penstock.protocol.primitives import MalformedMessage
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourcePattern,
)
from penstock.security.delegation import TokenInformation
from penstock.security.principals import Principal

numbers = st.integers(0, 2**31 - 1)
some_brokers = st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple)
names = st.text(min_size=1, max_size=12)
settings_of = st.dictionaries(names, st.text(max_size=8), max_size=3)
states = st.builds(
    PartitionState,
    leader=st.integers(-1, 9),
    leader_epoch=numbers,
    isr=some_brokers,
    min_isr=st.integers(1, 5),
    elr=some_brokers,
    lke=some_brokers,
    leader_recovery_state=st.integers(0, 1),
    controller_epoch=numbers,
    partition_epoch=numbers,
)
partitions = st.builds(
    PartitionImage, replicas=some_brokers, state=states, adding=some_brokers, removing=some_brokers
)
endpoints = st.builds(
    Endpoint, listener=names, host=names, port=st.integers(0, 65535), security_protocol=names
)
brokers = st.builds(
    BrokerImage,
    broker_id=st.integers(0, 9),
    epoch=st.integers(0, 2**63 - 1),
    endpoints=st.lists(endpoints, max_size=2).map(tuple),
    rack=st.none() | names,
    is_active=st.booleans(),
    fence_version=numbers,
)
topics = st.builds(
    TopicImage,
    name=names,
    topic_id=st.binary(min_size=16, max_size=16),
    partitions=st.dictionaries(st.integers(0, 6), partitions, max_size=4),
)
broker_maps = st.lists(brokers, max_size=3).map(lambda found: {b.broker_id: b for b in found})
topic_maps = st.lists(topics, max_size=3, unique_by=(lambda t: t.name, lambda t: t.topic_id)).map(
    lambda found: {t.name: t for t in found}
)
# Clients name the principals and hosts of these, in whatever letters.
principals = st.builds(Principal, st.sampled_from(["User", "Group", ""]), st.text(max_size=8))
tokens = st.builds(
    TokenInformation,
    token_id=names,
    owner=principals,
    requester=principals,
    renewers=st.lists(principals, max_size=2).map(tuple),
    issued_ms=numbers,
    max_ms=numbers,
    expires_ms=numbers,
)
token_maps = st.lists(tokens, max_size=2).map(lambda found: {one.token_id: one for one in found})
entries = st.builds(
    AccessControlEntry,
    principal=principals.map(str),
    host=st.text(max_size=8),
    operation=st.sampled_from(AclOperation),
    permission=st.sampled_from(AclPermission),
)
acl_maps = st.dictionaries(
    st.builds(
        ResourcePattern, st.sampled_from(AclResourceType), names, st.sampled_from(PatternType)
    ),
    st.frozensets(entries, min_size=1, max_size=2),
    max_size=2,
)
config_maps = st.dictionaries(st.tuples(names, names), settings_of, max_size=3)


@st.composite
def images(draw: st.DrawFn) -> ClusterImage:
    found = draw(topic_maps)
    return ClusterImage(
        cluster_id=draw(names),
        controller_id=draw(st.integers(-1, 9)),
        controller_epoch=draw(numbers),
        seq=draw(st.integers(0, 2**63 - 1)),
        brokers=draw(broker_maps),
        topics=found,
        topic_names_by_id={topic.topic_id: name for name, topic in found.items()},
        configs=draw(config_maps),
        acls=draw(acl_maps),
        tokens=draw(token_maps),
    )


deltas = st.builds(
    ImageDelta,
    brokers=st.tuples(broker_maps, st.dictionaries(st.integers(10, 19), st.none())).map(
        lambda both: {**both[0], **both[1]}
    ),
    topics=st.tuples(topic_maps, st.dictionaries(names.map("gone-{}".format), st.none())).map(
        lambda both: {**both[0], **both[1]}
    ),
    partitions=st.dictionaries(st.tuples(names, st.integers(0, 9)), partitions, max_size=5),
    configs=st.dictionaries(st.tuples(names, names), st.none() | settings_of, max_size=3),
    acls=acl_maps,
    tokens=token_maps,
)


@given(images())
def test_an_image_comes_back_as_it_was(image: ClusterImage) -> None:
    assert decode_image(encode_image(image)) == image


@given(st.lists(deltas, max_size=3))
def test_changes_come_back_as_they_were(changes: list[ImageDelta]) -> None:
    assert decode_deltas(encode_deltas(changes)) == changes


@given(images(), deltas)
def test_a_change_leads_to_the_same_image_on_both_sides(
    image: ClusterImage, delta: ImageDelta
) -> None:
    changed = replace(delta, partitions={})
    (received,) = decode_deltas(encode_deltas([changed]))
    assert decode_image(encode_image(image)).apply(received) == image.apply(changed)


def large_image(topic_count: int, partition_count: int) -> ClusterImage:
    """Three brokers, all partitions on each of them."""
    orders = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    looks = [
        PartitionImage(
            replicas=replicas,
            state=PartitionState(
                leader=replicas[0],
                leader_epoch=epoch,
                isr=replicas,
                min_isr=2,
                partition_epoch=epoch,
            ),
        )
        for epoch in range(20)
        for replicas in orders
    ]
    found = [
        TopicImage(
            name=f"topic-{t}",
            topic_id=t.to_bytes(16, "big"),
            partitions={p: looks[(t + 7 * p) % len(looks)] for p in range(partition_count)},
        )
        for t in range(topic_count)
    ]
    return ClusterImage(
        cluster_id="c",
        topics={topic.name: topic for topic in found},
        topic_names_by_id={topic.topic_id: topic.name for topic in found},
    )


def test_ten_thousand_partitions_fit_in_a_hundred_kilobytes() -> None:
    image = large_image(100, 100)
    payload = encode_image(image)
    assert len(payload) < 100_000
    assert decode_image(payload) == image


def test_equal_partitions_are_one_object_after_decoding() -> None:
    image = decode_image(encode_image(large_image(10, 100)))
    distinct = {id(partition) for _, partition in image.all_partitions()}
    assert len(distinct) == 60


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00",
        b"\x00{",
        b"\x00[]",
        b"\x00{}",
        b"\x02{}",
        b"\x00" + b"[" * 100_000,
        b"\x01not deflated",
        b'\x00{"looks":[[1]],"topics":[],"deltas":[]}',
        b'\x00{"looks":[],"topics":[["t","AA==",null,[0]]],"deltas":[{"partitions":{"t":[0,0]}}]}',
    ],
)
def test_what_is_not_an_image_is_refused(payload: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_image(payload)
    with pytest.raises(MalformedMessage):
        decode_deltas(payload)


@given(images(), st.data())
def test_a_damaged_image_is_refused_or_read_but_never_breaks_the_reader(
    image: ClusterImage, data: st.DataObject
) -> None:
    payload = bytearray(encode_image(image))
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with suppress(MalformedMessage):
        decode_image(bytes(payload))


def test_an_image_cut_short_is_refused() -> None:
    payload = encode_image(large_image(100, 100))
    assert payload[:1] == b"\x01"
    with pytest.raises(MalformedMessage, match="ends too early"):
        decode_image(payload[:-5])


def test_what_inflates_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_wire, "PAYLOAD_BYTES_MAX", 100_000)
    bomb = b"\x01" + zlib.compress(b" " * 200_000)
    with pytest.raises(MalformedMessage, match="too large"):
        decode_image(bomb)
