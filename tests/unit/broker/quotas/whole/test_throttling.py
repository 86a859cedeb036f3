"""What a quota does to requests: told in the answer, muted after, held back where that is possible.

The frames go through the dispatcher, as those of a client do; only the connection is not real,
and the clock of the quotas is turned by hand.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from penstock.broker.context import RequestContext
from penstock.broker.dispatch import Dispatcher
from penstock.cluster.control.controller import EntityOverrides
from penstock.cluster.image.image import ConfigKey
from penstock.errors import ErrorCode
from penstock.net.session import Session
from penstock.protocol.apis import ApiKey, Request, response_class
from penstock.protocol.headers import decode_response_header, encode_request_header
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from penstock.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from penstock.records.batch import Record, build_batch


class KeptPlace:
    """The place of an answer that waits."""

    def __init__(self) -> None:
        self.answered: asyncio.Queue[Any] = asyncio.Queue()

    def fill(self, parts: Any) -> None:
        self.answered.put_nowait(parts)


class Peer:
    """A connection that remembers how long it was muted for."""

    def __init__(self) -> None:
        self.session = Session(listener="PLAINTEXT", address="127.0.0.1:5")
        self.is_metered = False
        self.busy_s = 0.0
        self.mutes_ms: list[int] = []
        self.place = KeptPlace()

    def keep_place(self, _waiting: Any) -> "KeptPlace":
        return self.place

    def mute_for(self, seconds: float) -> None:
        self.mutes_ms.append(round(seconds * 1000))


class Desk:
    """A broker behind its dispatcher, with quotas and a clock for them."""

    def __init__(self, served: Any) -> None:
        self.served = served
        self.broker = served.broker
        self.now_ms = 1
        self.broker.quotas.now_ms = lambda: self.now_ms
        self._dispatch = Dispatcher(self.broker, listener="PLAINTEXT")

    def set(self, configs: Mapping[ConfigKey, Mapping[str, str]]) -> None:
        changes = [EntityOverrides(*key, config=config) for key, config in configs.items()]
        self.served.run(self.broker.controller.set_configs(changes))

    def send(
        self, request: Request, version: int, peer: Peer | None = None, client_id: str = "c"
    ) -> Any:
        """The answer as the client reads it; None: there is none."""
        return self.served.run(self.answer(request, version, peer, client_id))

    async def answer(
        self, request: Request, version: int, peer: Peer | None = None, client_id: str = "c"
    ) -> Any:
        api_key = ApiKey(type(request).api_key)
        header = encode_request_header(api_key, version, 5, client_id)
        frame = memoryview(bytearray(header + request.encode(version)))
        peer = peer or Peer()
        parts: Any = self._dispatch(peer, frame)  # type: ignore[arg-type]
        if asyncio.iscoroutine(parts):
            parts = await parts
        elif parts is None and len(self.broker.waiting_room):
            parts = await peer.place.answered.get()
        if parts is None:
            return None
        data = b"".join(part if isinstance(part, bytes) else part.read() for part in parts)[4:]
        _, at = decode_response_header(data, api_key, version)
        return response_class(api_key).decode(data[at:], version)


@pytest.fixture
def desk(served: Any) -> Desk:
    return Desk(served)


def produce(size: int, acks: int = 1, topic: str = "t") -> ProduceRequest:
    """A request a little larger than `size`."""
    record = Record(offset=0, timestamp=1, key=None, value=bytes(size), headers=())
    data = PartitionProduceData(index=0, records=memoryview(build_batch([record])))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def fetch(offset: int = 0, **request: Any) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    defaults: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    topics = [FetchTopic(topic="t", partitions=[partition])]
    return FetchRequest(topics=topics, **{**defaults, **request})


def records_of(answer: Any) -> int:
    return sum(len(p.records) for topic in answer.responses for p in topic.partitions)


# Produce


@pytest.mark.parametrize("version", [3, 9, 12])
def test_a_producer_is_answered_and_told_to_wait(desk: Desk, version: int) -> None:
    desk.served.create("t")
    desk.set({("clients", "c"): {"producer_byte_rate": "1000"}})
    peer = Peer()
    assert desk.send(produce(9_000), version, peer).throttle_time_ms == 0
    assert peer.mutes_ms == []
    answer = desk.send(produce(9_000), version, peer)
    (partition,) = answer.responses[0].partition_responses
    assert (partition.error_code, partition.base_offset) == (0, 1)
    assert 8_000 < answer.throttle_time_ms < 8_600
    assert peer.mutes_ms == [answer.throttle_time_ms]


def test_a_version_without_throttle_time_is_muted_all_the_same(desk: Desk) -> None:
    desk.served.create("t")
    desk.set({("clients", "c"): {"request_percentage": "0.00001"}})
    peer = Peer()
    answer = desk.send(ApiVersionsRequest(), 0, peer)
    assert answer.error_code == 0
    assert peer.mutes_ms and 0 < peer.mutes_ms[0] <= 1000


def test_a_producer_without_acks_is_muted_without_an_answer(desk: Desk) -> None:
    desk.served.create("t")
    desk.set({("clients", "c"): {"producer_byte_rate": "100", "request_percentage": "0.00001"}})
    peer = Peer()
    assert desk.send(produce(9_000, acks=0), 9, peer) is None
    assert len(peer.mutes_ms) == 1 and peer.mutes_ms[0] > 80_000


def test_other_clients_are_not_touched(desk: Desk) -> None:
    desk.served.create("t")
    desk.set({("clients", "c"): {"producer_byte_rate": "1"}})
    peer = Peer()
    assert desk.send(produce(9_000), 9, peer, client_id="d").throttle_time_ms == 0
    assert peer.mutes_ms == []


def test_what_was_refused_is_charged_too(desk: Desk) -> None:
    desk.set({("clients", "c"): {"producer_byte_rate": "100"}})
    answer = desk.send(produce(9_000, topic="none"), 9)
    (partition,) = answer.responses[0].partition_responses
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.throttle_time_ms > 80_000


def test_two_connections_of_a_client_share_its_quota(desk: Desk) -> None:
    desk.served.create("t")
    desk.set({("clients", "c"): {"producer_byte_rate": "1000"}})
    assert desk.send(produce(9_800), 9, Peer()).throttle_time_ms == 0
    assert desk.send(produce(9_800), 9, Peer()).throttle_time_ms > 9_000


def test_nobody_is_throttled_any_more_once_the_quota_is_gone(desk: Desk) -> None:
    desk.served.create("t")
    desk.set({("clients", "c"): {"producer_byte_rate": "100"}})
    assert desk.send(produce(9_000), 9).throttle_time_ms > 0
    desk.set({("clients", "c"): {}})
    assert desk.send(produce(9_000), 9).throttle_time_ms == 0


# Fetch


def stock(desk: Desk, *sizes: int) -> None:
    """Batches of these sizes in the topic."""
    desk.served.create("t")
    for size in sizes:
        desk.send(produce(size), 9, client_id="stocker")


def test_a_consumer_gets_no_more_than_its_quota_allows_at_once(desk: Desk) -> None:
    stock(desk, *[1000] * 20)
    desk.set({("clients", "c"): {"consumer_byte_rate": "500"}})
    answer = desk.send(fetch(), 11)
    assert 3_000 < records_of(answer) <= 5_000
    assert answer.throttle_time_ms == 0


@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_consumer_over_its_quota_gets_nothing_now_and_everything_later(
    desk: Desk, version: int
) -> None:
    stock(desk, *[1000] * 8)
    desk.set({("clients", "c"): {"consumer_byte_rate": "500"}})
    peer = Peer()
    first = desk.send(fetch(max_bytes=4500), version, peer)
    assert records_of(first) > 4_000 and not peer.mutes_ms
    held = desk.send(fetch(4, max_bytes=4500), version, peer)
    assert held.responses == []
    assert held.throttle_time_ms > 0
    assert peer.mutes_ms == [held.throttle_time_ms]
    desk.now_ms += 11_000
    later = desk.send(fetch(4, max_bytes=4500), version, peer)
    assert records_of(later) == records_of(first)
    assert later.throttle_time_ms == 0


def test_a_batch_larger_than_the_quota_gets_through_and_is_waited_for(desk: Desk) -> None:
    stock(desk, 50_000, 50_000)
    desk.set({("clients", "c"): {"consumer_byte_rate": "500"}})
    first = desk.send(fetch(), 11)
    assert records_of(first) > 50_000
    assert first.throttle_time_ms > 90_000
    desk.now_ms += 20_000
    assert records_of(desk.send(fetch(1), 11)) == 0
    desk.now_ms += 80_000
    assert records_of(desk.send(fetch(1), 11)) > 50_000


def test_a_throttled_answer_begins_no_session_and_tells_a_session_nothing(desk: Desk) -> None:
    stock(desk, *[1000] * 6)
    desk.set({("clients", "c"): {"consumer_byte_rate": "500"}})
    opened = desk.send(fetch(session_epoch=0, max_bytes=4500), 11)
    assert opened.session_id != 0
    sessions = len(desk.broker.fetch_sessions)
    refused = desk.send(fetch(session_epoch=0, max_bytes=4500), 11)
    assert (refused.session_id, refused.responses) == (0, [])
    assert len(desk.broker.fetch_sessions) == sessions
    going_on = fetch(4, session_id=opened.session_id, session_epoch=1, max_bytes=4500)
    held = desk.send(going_on, 11)
    assert (held.session_id, held.responses) == (opened.session_id, [])
    assert held.throttle_time_ms > 0
    desk.now_ms += 11_000
    going_on.session_epoch = 2
    assert records_of(desk.send(going_on, 11)) > 1_500


def test_a_consumer_that_waits_is_charged_when_it_is_answered(desk: Desk) -> None:
    stock(desk, 4_000)
    desk.set({("clients", "c"): {"consumer_byte_rate": "500"}})
    peer = Peer()
    assert records_of(desk.send(fetch(), 11, peer)) > 4_000

    async def wait_for_more() -> Any:
        waiting = asyncio.create_task(desk.answer(fetch(1, max_wait_ms=5_000), 11, peer))
        await asyncio.sleep(0)
        await desk.answer(produce(4_000), 9, client_id="stocker")
        return await waiting

    answer = desk.served.run(wait_for_more())
    assert answer.responses == []
    assert peer.mutes_ms == [answer.throttle_time_ms]


@pytest.mark.parametrize("replica_id", [7, 3])
def test_to_call_oneself_a_follower_is_not_enough(desk: Desk, replica_id: int) -> None:
    stock(desk, 50_000)
    desk.set({("clients", "c"): {"consumer_byte_rate": "500"}})
    (topic,) = desk.send(fetch(replica_id=replica_id), 11).responses
    (answer,) = topic.partitions
    assert not answer.records
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Time


def test_the_time_of_requests_is_charged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.set({("users", "ANONYMOUS"): {"request_percentage": "10"}})
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    from penstock.broker.handlers import api_versions

    plain = api_versions.handle

    def slow(request: Any, context: RequestContext) -> Any:
        clock[0] += 0.4
        return plain(request, context)

    monkeypatch.setattr(api_versions, "handle", slow)
    # 0.4 s of work are 4 % of the window of 10 s; the third makes 12 %.
    told = [desk.send(ApiVersionsRequest(), 2).throttle_time_ms for _ in range(3)]
    assert told == [0, 0, 1000]  # 2 s by the formula, but never more than one sample.


def test_waiting_is_not_charged_and_working_in_between_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.set({("clients", "c"): {"request_percentage": "50"}})
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    from penstock.broker.handlers import api_versions

    plain = api_versions.handle

    async def patient(request: Any, context: RequestContext) -> Any:
        clock[0] += 0.5
        waiting = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(pass_time, waiting)
        await waiting
        clock[0] += 0.25
        return plain(request, context)

    def pass_time(waiting: "asyncio.Future[None]") -> None:
        clock[0] += 100
        waiting.set_result(None)

    monkeypatch.setattr(api_versions, "handle", patient)
    desk.send(ApiVersionsRequest(), 2)
    meter = desk.broker.quotas.of("User:ANONYMOUS", "c").request
    assert meter.used.total == pytest.approx(75)


def test_each_look_of_a_consumer_that_waits_is_charged(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock(desk, 10)
    desk.set({("clients", "c"): {"request_percentage": "50"}})
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    from penstock.broker.handlers import fetch as handler

    plain = handler._look

    def slow(*args: Any) -> Any:
        clock[0] += 0.25
        return plain(*args)

    monkeypatch.setattr(handler, "_look", slow)
    partition = desk.served.partition("t")

    async def story() -> None:
        wanted = fetch(1, max_wait_ms=60_000)
        waiting = asyncio.create_task(desk.answer(wanted, 11))
        await asyncio.sleep(0)
        partition.wake_readers()  # There is nothing new.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        await desk.answer(produce(10), 9, client_id="stocker")
        await waiting

    desk.served.run(story())
    meter = desk.broker.quotas.of("User:ANONYMOUS", "c").request
    assert meter.used.total == pytest.approx(75)


def test_an_error_in_the_middle_of_waiting_comes_through(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.set({("clients", "c"): {"request_percentage": "50"}})
    from penstock.broker.handlers import api_versions

    async def broken(_request: Any, _context: RequestContext) -> Any:
        await asyncio.wait_for(asyncio.get_running_loop().create_future(), timeout=0.001)

    monkeypatch.setattr(api_versions, "handle", broken)
    assert desk.send(ApiVersionsRequest(), 2).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_waiting_request_can_be_cancelled(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.set({("clients", "c"): {"request_percentage": "50"}})
    from penstock.broker.handlers import api_versions

    seen = []

    async def patient(_request: Any, _context: RequestContext) -> Any:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    monkeypatch.setattr(api_versions, "handle", patient)

    async def give_up() -> None:
        asking = asyncio.create_task(desk.answer(ApiVersionsRequest(), 2))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    desk.served.run(give_up())
    assert seen == ["cancelled"]


def test_the_time_of_receiving_and_sending_is_charged_with_the_next_request(desk: Desk) -> None:
    desk.set({("clients", "c"): {"request_percentage": "10"}})
    peer = Peer()
    desk.send(ApiVersionsRequest(), 2, peer)
    assert peer.is_metered
    peer.busy_s += 0.5  # As a connection adds after a turn.
    desk.send(ApiVersionsRequest(), 2, peer)
    meter = desk.broker.quotas.of("User:ANONYMOUS", "c").request
    assert 50 < meter.used.total < 60
    assert peer.busy_s < 0  # This handler's own time, which the turn under way will add again.


def test_time_from_before_the_quota_does_not_count(desk: Desk) -> None:
    desk.set({("clients", "c"): {"request_percentage": "10"}})
    peer = Peer()
    peer.is_metered, peer.busy_s = True, 500.0
    desk.send(ApiVersionsRequest(), 2, peer)
    assert desk.broker.quotas.of("User:ANONYMOUS", "c").request.used.total < 110


def test_what_brokers_ask_of_each_other_is_free(desk: Desk) -> None:
    desk.set({("clients", "c"): {"request_percentage": "0.00001"}})
    peer = Peer()
    desk.send(WriteTxnMarkersRequest(markers=[]), 1, peer)
    assert peer.mutes_ms == []


# Changes of topics

LIMITED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


def create(name: str, partitions: int, **request: Any) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], **request)


def delete(version: int, *names: str) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names))
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names])


def grow(name: str, count: int, **request: Any) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], **request)


Change = tuple[Callable[[], Request], int, Callable[[Any], list[int]]]
CHANGES: dict[str, Change] = {
    "create": (lambda: create("new", 2), 6, lambda a: [t.error_code for t in a.topics]),
    "delete": (lambda: delete(5, "old"), 5, lambda a: [t.error_code for t in a.responses]),
    "grow": (lambda: grow("old", 5), 3, lambda a: [t.error_code for t in a.results]),
}


@pytest.fixture
def indebted(desk: Desk) -> Desk:
    """A client that may create 1 partition a second and has created 20 of its 11 at once."""
    desk.served.create("old", partitions=3)
    desk.set({("clients", "c"): {"controller_mutation_rate": "1"}})
    assert desk.send(create("many", 20), 7).throttle_time_ms == 0
    return desk


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_refused_while_the_client_is_in_debt(indebted: Desk, change: str) -> None:
    ask, version, codes = CHANGES[change]
    before = indebted.broker.image.topics
    peer = Peer()
    answer = indebted.send(ask(), version, peer)
    assert codes(answer) == [LIMITED]
    assert answer.throttle_time_ms == 9_000
    assert peer.mutes_ms == [9_000]
    assert indebted.broker.image.topics == before
    indebted.now_ms += 9_000
    assert codes(indebted.send(ask(), version)) == [0]
    assert indebted.broker.image.topics != before


@pytest.mark.parametrize("change", CHANGES)
def test_an_older_version_is_served_and_muted_after(indebted: Desk, change: str) -> None:
    ask, version, codes = CHANGES[change]
    before = indebted.broker.image.topics
    peer = Peer()
    answer = indebted.send(ask(), version - 1, peer)
    assert codes(answer) == [0]
    assert answer.throttle_time_ms > 9_000
    assert peer.mutes_ms == [answer.throttle_time_ms]
    assert indebted.broker.image.topics != before


def test_to_validate_only_costs_nothing(indebted: Desk) -> None:
    assert indebted.send(create("new", 50, validate_only=True), 7).topics[0].error_code == 0
    assert indebted.send(grow("old", 50, validate_only=True), 3).results[0].error_code == 0


def test_what_cannot_be_done_costs_nothing(desk: Desk) -> None:
    desk.served.create("old", partitions=3)
    desk.set({("clients", "c"): {"controller_mutation_rate": "1"}})
    for asked, version in [
        (create("old", 50), 7),
        (grow("old", 2), 3),
        (grow("none", 50), 3),
        (delete(6, "none"), 6),
    ]:
        assert desk.send(asked, version).throttle_time_ms == 0
    meter = desk.broker.quotas.of("User:ANONYMOUS", "c").mutation
    assert meter.bucket.tokens == 11


def test_of_several_topics_those_beyond_the_tokens_are_refused(desk: Desk) -> None:
    desk.set({("clients", "c"): {"controller_mutation_rate": "1"}})
    topics = [CreatableTopic(name=name, num_partitions=8, replication_factor=1) for name in "abc"]
    answer = desk.send(CreateTopicsRequest(topics=topics), 7)
    assert [topic.error_code for topic in answer.topics] == [0, 0, LIMITED]
    assert answer.throttle_time_ms == 5_000
    assert set(desk.broker.image.topics) == {"a", "b"}


def test_topics_made_on_first_use_are_waited_for(desk: Desk) -> None:
    desk.set({("clients", "c"): {"controller_mutation_rate": "0.1"}})
    peer = Peer()
    for name in "ab":
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
        )
        answer = desk.send(asked, 8, peer)
    assert set(desk.broker.image.topics) == {"a", "b"}
    assert answer.throttle_time_ms == 9_000
    assert peer.mutes_ms == [9_000]
