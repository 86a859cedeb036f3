"""The cluster's image and its changes as bytes, for brokers that pull them from the controller.

Compact JSON, deflated when large. Most partitions have the same replicas and the same state as many
others. So each distinct partition is written once, in a list, and topics name their partitions by
their index in that list. A decoded image then holds each distinct partition once, too.
Who asks for what, and when, is for stream.py and follower.py.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.cluster.image.image import (
    BrokerImage,
    ClusterImage,
    ConfigKey,
    Endpoint,
    ImageDelta,
    PartitionImage,
    PartitionKey,
    PartitionState,
    TopicImage,
)
from penstock.protocol.primitives import MalformedMessage
from penstock.security.acls.index import Entries
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
    ResourcePattern,
)
from penstock.security.delegation import TokenInformation
from penstock.security.principals import Principal, PrincipalUnreadable

PAYLOAD_BYTES_MAX = 256 * 1024 * 1024  # Of JSON: some millions of partitions.

_PLAIN, _DEFLATED = b"\x00", b"\x01"
_DEFLATE_FROM_BYTES = 16 * 1024
_DEFLATE_LEVEL = 1  # Brokers are near each other: the gain is in bytes copied, not in the link.

_DISTINCT = "looks"  # The key of the list of distinct partitions.

_UNREADABLE = (KeyError, TypeError, ValueError, IndexError, AttributeError, PrincipalUnreadable)

_json_text = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


def encode_image(image: ClusterImage) -> bytes:
    distinct = _DistinctPartitions()
    return _packed(
        {
            "cluster_id": image.cluster_id,
            "controller_id": image.controller_id,
            "controller_epoch": image.controller_epoch,
            "seq": image.seq,
            "brokers": _brokers_value(image.brokers),
            "topics": [_topic_value(topic, distinct) for topic in image.topics.values()],
            "configs": [[*key, config] for key, config in image.configs.items()],
            **_acls_value(image.acls),
            **_tokens_value(image.tokens),
            _DISTINCT: distinct.values,
        }
    )


def decode_image(data: bytes) -> ClusterImage:
    """Raises MalformedMessage for whatever `encode_image` did not write."""
    value = _unpacked(data)
    try:
        distinct = [_partition(one) for one in value[_DISTINCT]]
        topics = [_topic(topic, distinct) for topic in value["topics"]]
        return ClusterImage(
            cluster_id=str(value["cluster_id"]),
            controller_id=int(value["controller_id"]),
            controller_epoch=int(value["controller_epoch"]),
            seq=int(value["seq"]),
            brokers={broker[0]: _broker(broker) for broker in value["brokers"]},
            topics={topic.name: topic for topic in topics},
            topic_names_by_id={topic.topic_id: topic.name for topic in topics},
            configs={(kind, name): config for kind, name, config in value["configs"]},
            acls={one: found for one, found in _acls(value.get("acls", ())).items() if found},
            tokens={token[0]: _token(token) for token in value.get("tokens", ())},
        )
    except _UNREADABLE as error:
        raise MalformedMessage(f"not a cluster image: {error!r}") from error


def encode_deltas(deltas: Sequence[ImageDelta]) -> bytes:
    distinct = _DistinctPartitions()
    return _packed(
        {"deltas": [_delta_value(d, distinct) for d in deltas], _DISTINCT: distinct.values}
    )


def decode_deltas(data: bytes) -> list[ImageDelta]:
    """Raises MalformedMessage for whatever `encode_deltas` did not write."""
    value = _unpacked(data)
    try:
        distinct = [_partition(one) for one in value[_DISTINCT]]
        return [_delta(delta, distinct) for delta in value["deltas"]]
    except _UNREADABLE as error:
        raise MalformedMessage(f"not changes of a cluster image: {error!r}") from error


def _packed(value: Mapping[str, object]) -> bytes:
    text = _json_text(value).encode()
    if len(text) < _DEFLATE_FROM_BYTES:
        return _PLAIN + text
    return _DEFLATED + zlib.compress(text, _DEFLATE_LEVEL)


def _unpacked(data: bytes) -> Any:
    kind, body = bytes(data[:1]), data[1:]
    if len(body) > PAYLOAD_BYTES_MAX:
        raise MalformedMessage(f"an image of {len(body)} bytes is too large")
    if kind == _DEFLATED:
        body = _inflated(body)
    elif kind != _PLAIN:
        raise MalformedMessage("an image is written in an unknown way")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedMessage(f"an image cannot be read: {error}") from error


def _inflated(body: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(body, PAYLOAD_BYTES_MAX)
    except zlib.error as error:
        raise MalformedMessage(f"an image cannot be read: {error}") from error
    if not inflater.eof:
        raise MalformedMessage("an image is too large, or ends too early")
    return text


class _DistinctPartitions:
    """The distinct partitions of an image, each with its index, in the order they are met."""

    def __init__(self) -> None:
        self.values: list[list[object]] = []
        self._indexes: dict[PartitionImage, int] = {}

    def index_of(self, partition: PartitionImage) -> int:
        known = self._indexes.get(partition)
        if known is None:
            known = self._indexes[partition] = len(self.values)
            replicas, state, adding, removing = partition
            self.values.append([replicas, adding, removing, *state])
        return known


def _partition(value: Sequence[Any]) -> PartitionImage:
    """Reads what `_DistinctPartitions` wrote; by position, because there are thousands."""
    replicas, adding, removing, leader, epoch, isr, min_isr, elr, lke, recovery, by, version = value
    state = PartitionState(
        leader, epoch, tuple(isr), min_isr, tuple(elr), tuple(lke), recovery, by, version
    )
    return PartitionImage(tuple(replicas), state, tuple(adding), tuple(removing))


def _topic_value(topic: TopicImage, distinct: _DistinctPartitions) -> list[object]:
    partitions = topic.partitions
    numbers: list[int] | None = list(partitions)
    if numbers == list(range(len(partitions))):
        numbers = None  # All from 0 on, as in nearly every topic.
    return [
        topic.name,
        b64encode(topic.topic_id).decode(),
        numbers,
        [distinct.index_of(partition) for partition in partitions.values()],
    ]


def _topic(value: Sequence[Any], distinct: Sequence[PartitionImage]) -> TopicImage:
    name, topic_id, numbers, shown = value
    if numbers is None:
        numbers = range(len(shown))
    return TopicImage(
        name=str(name),
        topic_id=b64decode(topic_id, validate=True),
        partitions={number: distinct[index] for number, index in zip(numbers, shown, strict=True)},
    )


def _brokers_value(brokers: Mapping[int, BrokerImage]) -> list[list[object]]:
    return [
        [b.broker_id, b.epoch, b.endpoints, b.rack, b.is_active, b.fence_version]
        for b in brokers.values()
    ]


def _broker(value: Sequence[Any]) -> BrokerImage:
    broker_id, epoch, endpoints, rack, is_active, fence_version = value
    return BrokerImage(
        broker_id=int(broker_id),
        epoch=int(epoch),
        endpoints=tuple(Endpoint(*endpoint) for endpoint in endpoints),
        rack=rack,
        is_active=bool(is_active),
        fence_version=int(fence_version),
    )


def _delta_value(delta: ImageDelta, distinct: _DistinctPartitions) -> dict[str, object]:
    by_topic: dict[str, list[int]] = {}
    for (name, number), partition in delta.partitions.items():
        by_topic.setdefault(name, []).extend((number, distinct.index_of(partition)))
    return {
        "brokers": _brokers_value({b: i for b, i in delta.brokers.items() if i is not None}),
        "gone_brokers": [b for b, image in delta.brokers.items() if image is None],
        "topics": [_topic_value(t, distinct) for t in delta.topics.values() if t is not None],
        "gone_topics": [name for name, topic in delta.topics.items() if topic is None],
        "partitions": by_topic,
        "configs": [[*key, config] for key, config in delta.configs.items()],
        **_acls_value(delta.acls),
        **_tokens_value(delta.tokens),
    }


def _delta(value: Mapping[str, Any], distinct: Sequence[PartitionImage]) -> ImageDelta:
    partitions: dict[PartitionKey, PartitionImage] = {}
    for name, shown in value["partitions"].items():
        for number, index in zip(shown[::2], shown[1::2], strict=True):
            partitions[name, number] = distinct[index]
    topics = [_topic(topic, distinct) for topic in value["topics"]]
    configs: dict[ConfigKey, Mapping[str, str] | None] = {
        (kind, name): config for kind, name, config in value["configs"]
    }
    return ImageDelta(
        brokers={
            **{broker[0]: _broker(broker) for broker in value["brokers"]},
            **dict.fromkeys(value["gone_brokers"]),
        },
        topics={**{topic.name: topic for topic in topics}, **dict.fromkeys(value["gone_topics"])},
        partitions=partitions,
        configs=configs,
        acls=_acls(value.get("acls", ())),
        tokens={
            **{token[0]: _token(token) for token in value.get("tokens", ())},
            **dict.fromkeys(value.get("gone_tokens", ())),
        },
    )


def _acls_value(acls: Mapping[ResourcePattern, Entries | None]) -> dict[str, list[list[object]]]:
    """Left out where there are none, as in most clusters."""
    listed: list[list[object]] = [
        [
            one.type,
            one.name,
            one.pattern,
            [[e.principal, e.host, e.operation, e.permission] for e in entries or ()],
        ]
        for one, entries in acls.items()
    ]
    return {"acls": listed} if listed else {}


def _acls(value: Sequence[Any]) -> dict[ResourcePattern, Entries | None]:
    """None: a pattern has no rules any more."""
    found: dict[ResourcePattern, Entries | None] = {}
    for kind, name, pattern, entries in value:
        resource = ResourcePattern(AclResourceType(kind), str(name), PatternType(pattern))
        found[resource] = (
            frozenset(
                AccessControlEntry(
                    str(principal), str(host), AclOperation(operation), AclPermission(permission)
                )
                for principal, host, operation, permission in entries
            )
            or None
        )
    return found


def _tokens_value(tokens: Mapping[str, TokenInformation | None]) -> dict[str, list[object]]:
    """Left out where there are none, as in most clusters."""
    listed: list[object] = [
        [
            token.token_id,
            str(token.owner),
            str(token.requester),
            [str(renewer) for renewer in token.renewers],
            token.issued_ms,
            token.max_ms,
            token.expires_ms,
        ]
        for token in tokens.values()
        if token is not None
    ]
    gone: list[object] = [token_id for token_id, token in tokens.items() if token is None]
    found = {"tokens": listed, "gone_tokens": gone}
    return {name: value for name, value in found.items() if value}


def _token(value: Sequence[Any]) -> TokenInformation:
    token_id, owner, requester, renewers, issued_ms, max_ms, expires_ms = value
    return TokenInformation(
        token_id=str(token_id),
        owner=Principal.parse(owner),
        requester=Principal.parse(requester),
        renewers=tuple(Principal.parse(renewer) for renewer in renewers),
        issued_ms=int(issued_ms),
        max_ms=int(max_ms),
        expires_ms=int(expires_ms),
    )
