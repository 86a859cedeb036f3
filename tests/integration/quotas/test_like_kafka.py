"""The same quotas on Penstock and on Apache Kafka: stored, shown, refused and felt alike.

Both servers are asked the same in the same order. Sentences are ours and are not compared.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.batches import batch
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess
from tests.support.waiting import eventually

from penstock.client.wire.connection import BrokerConnection
from penstock.errors import ErrorCode
from penstock.protocol.apis import Request
from penstock.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryDataRequest,
    OpData,
)
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from penstock.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

pytestmark = pytest.mark.kafka

EXACT, DEFAULT, ANY = range(3)
RATE = 10_000
TOPIC = "t"

Part = tuple[str, str | None]


def entry(parts: list[Part], **changes: float | None) -> EntryDataRequest:
    return EntryDataRequest(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ],
    )


ALTERATIONS = [
    entry([("user", "alice")], producer_byte_rate=1000),
    entry([("user", None)], consumer_byte_rate=2000),
    entry([("user", "al ice/x"), ("client-id", "c")], request_percentage=12.5),
    entry([("client-id", None), ("user", "alice")], controller_mutation_rate=3.5),
    entry([("client-id", "c")], producer_byte_rate=5, consumer_byte_rate=6),
    entry([("client-id", "c")], producer_byte_rate=None),
    entry([("client-id", "<default>")], producer_byte_rate=7),
    entry([("ip", "10.0.0.1")], connection_creation_rate=8),
    entry([("ip", None)], connection_creation_rate=9),
    # Those below are refused, or do nothing.
    entry([("user", "gone")], producer_byte_rate=None),
    entry([], producer_byte_rate=1),
    entry([("user", "")], producer_byte_rate=1),
    entry([("group", "g")], producer_byte_rate=1),
    entry([("ip", "10.0.0.1"), ("user", "a")], producer_byte_rate=1),
    entry([("ip", "no address at all")], connection_creation_rate=1),
    entry([("ip", "10.0.0.2")], producer_byte_rate=1),
    entry([("user", "b")], connection_creation_rate=1),
    entry([("user", "b")], no_such_quota=1),
    entry([("user", "b")], producer_byte_rate=0),
    entry([("user", "b")], producer_byte_rate=-1),
    entry([("user", "b")], producer_byte_rate=1.5),
    entry([("user", "b")], producer_byte_rate=1e20),
    entry([("user", "b")], request_percentage=0),
]

DESCRIPTIONS: list[tuple[list[tuple[str, int, str | None]], bool]] = [
    ([], False),
    ([], True),
    ([("user", EXACT, "alice")], True),
    ([("user", EXACT, "alice")], False),
    ([("user", DEFAULT, None)], True),
    ([("user", ANY, None)], True),
    ([("user", ANY, None)], False),
    ([("client-id", ANY, None)], True),
    ([("client-id", DEFAULT, None)], False),
    ([("client-id", EXACT, "<default>")], True),
    ([("user", ANY, None), ("client-id", ANY, None)], True),
    ([("user", EXACT, "alice"), ("client-id", DEFAULT, None)], True),
    ([("ip", ANY, None)], True),
    ([("ip", EXACT, "10.0.0.1")], True),
    # Those below are refused.
    ([("", ANY, None)], True),
    ([("group", ANY, None)], True),
    ([("user", ANY, None), ("user", EXACT, "a")], True),
    ([("user", ANY, None), ("ip", ANY, None)], True),
    ([("user", EXACT, None)], True),
    ([("user", DEFAULT, "a")], True),
    ([("user", ANY, "a")], True),
    ([("user", 3, None)], True),
]


def ask(server: ServerProcess, request: Request, version: int, client_id: str = "c") -> Any:
    with BrokerConnection(HOST, server.port, client_id=client_id) as connection:
        return connection.request(request, version)


def alter(server: ServerProcess, *entries: EntryDataRequest) -> list[int]:
    answer = ask(server, AlterClientQuotasRequest(entries=list(entries)), 1)
    return [result.error_code for result in answer.entries]


def limit(server: ServerProcess, client_id: str, **quotas: float) -> None:
    """Set quotas, and wait until the server says that it has them."""
    assert alter(server, entry([("client-id", client_id)], **quotas)) == [0]
    wanted = [("client-id", EXACT, client_id)]
    eventually(lambda: describe(server, wanted, strict=True)[1])


def describe(
    server: ServerProcess, components: list[tuple[str, int, str | None]], *, strict: bool
) -> Any:
    """The error code, and entities with their quotas in a fixed order."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match, match=name)
            for kind, match, name in components
        ],
        strict=strict,
    )
    answer = ask(server, request, 1)
    found = [
        (
            sorted((part.entity_type, str(part.entity_name)) for part in entry.entity),
            sorted((value.key, value.value) for value in entry.values),
        )
        for entry in answer.entries or ()
    ]
    return answer.error_code, sorted(found)


def produce(size: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=memoryview(batch([bytes(size)])))
    topics = [TopicProduceData(name=TOPIC, partition_data=[data])]
    return ProduceRequest(acks=1, timeout_ms=10_000, topic_data=topics)


def fetch(offset: int, bytes_max: int) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic=TOPIC, partitions=[partition])]
    return FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=bytes_max, topics=topics)


def create(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, ...]]:
    """Penstock and Apache Kafka, with a topic."""
    with (
        KafkaProcess(needs(CURRENT), tmp_path_factory.mktemp("theirs")) as kafka,
        BrokerProcess(tmp_path_factory.mktemp("ours")) as penstock,
    ):
        both = (penstock, kafka)
        for server in both:
            server.start()
            assert ask(server, create(TOPIC, 1), 5).topics[0].error_code == 0
            eventually(lambda server=server: error_of(ask(server, produce(1), 7)) == 0)
        yield both
        assert penstock.tracebacks() == {}


def error_of(produced: Any) -> int:
    return int(produced.responses[0].partition_responses[0].error_code)


def test_quotas_are_set_shown_and_refused_alike(servers: tuple[ServerProcess, ...]) -> None:
    seen = []
    for server in servers:
        altered = [code for change in ALTERATIONS for code in alter(server, change)]
        eventually(lambda server=server: len(describe(server, [], strict=False)[1]) >= 8)
        described = [
            describe(server, components, strict=strict) for components, strict in DESCRIPTIONS
        ]
        seen.append((altered, described))
        for change in ALTERATIONS[:9]:  # The other tests must not feel them.
            names = [(part.entity_type, part.entity_name) for part in change.entity]
            alter(server, entry(names, **{op.key: None for op in change.ops}))
        eventually(lambda server=server: describe(server, [], strict=False) == (0, []))
    (altered, described), (their_altered, their_described) = seen
    assert altered == their_altered
    assert described == their_described


def test_a_producer_waits_as_long(servers: tuple[ServerProcess, ...]) -> None:
    """Connections of one client one after the other, each with its own pause."""
    seen = []
    for server in servers:
        limit(server, "writer", producer_byte_rate=RATE)
        began_s = time.monotonic()
        told = [
            ask(server, produce(size), 7, "writer").throttle_time_ms
            for size in (90_000, 50_000, 200_000, 10)
        ]
        seen.append((told, time.monotonic() - began_s))
    (ours, our_s), (theirs, their_s) = seen
    # The time that passes between the requests is the only thing in which they may differ.
    slack_ms = (our_s + their_s) * 1000 + 50
    assert ours[0] == theirs[0] == 0
    assert ours == pytest.approx(theirs, abs=slack_ms)
    assert ours[1] == pytest.approx(4_000, abs=slack_ms + 100)


def test_a_consumer_gets_as_much_and_then_nothing(servers: tuple[ServerProcess, ...]) -> None:
    seen = []
    for server in servers:
        stocked = ask(server, produce(60_000), 7, "stocker").responses[0].partition_responses[0]
        limit(server, "reader", consumer_byte_rate=RATE)
        told = []
        for _ in range(3):
            answer = ask(server, fetch(stocked.base_offset, 70_000), 11, "reader")
            size = sum(len(p.records) for topic in answer.responses for p in topic.partitions)
            told.append((size, answer.throttle_time_ms > 0))
        seen.append(told)
    assert seen[0] == seen[1]
    assert seen[0][0][0] > 60_000
    assert [is_throttled for _, is_throttled in seen[0]] == [False, True, True]


def test_topics_are_changed_as_often(servers: tuple[ServerProcess, ...]) -> None:
    seen = []
    for server in servers:
        limit(server, "changer", controller_mutation_rate=1)
        created = ask(server, create("many", 100), 7, "changer")
        eventually(lambda server=server: error_of(ask(server, produce(1), 7)) == 0)
        refused = ask(server, create("more", 1), 7, "changer")
        growth = CreatePartitionsTopic(name="many", count=101, assignments=None)
        grown = ask(
            server, CreatePartitionsRequest(topics=[growth], timeout_ms=30_000), 3, "changer"
        )
        doomed = DeleteTopicState(name="many")
        deleted = ask(server, DeleteTopicsRequest(topics=[doomed], timeout_ms=30_000), 6, "changer")
        old = ask(server, create("by an old client", 1), 5, "changer")
        permitted = ask(server, create("by-an-old-client", 1), 5, "changer")
        seen.append(
            (
                [topic.error_code for topic in (*created.topics, *refused.topics)],
                [topic.error_code for topic in (*grown.results, *deleted.responses)],
                [topic.error_code for topic in (*old.topics, *permitted.topics)],
                [
                    round(answer.throttle_time_ms / 10_000)
                    for answer in (created, refused, grown, deleted, permitted)
                ],
            )
        )
    assert seen[0] == seen[1]
    assert seen[0][0] == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
