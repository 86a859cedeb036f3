"""Live streams of a topic: SSE, NDJSON and WebSocket."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.integration.rest.v3.talk import OpenRequest, produce, record
from tests.support.broker import BrokerProcess
from tests.support.rest import RestProcess
from tests.support.waiting import eventually
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect


class Events:
    """An event stream and what it said last."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.last_id = ""

    def next(self) -> tuple[str, Any]:
        """The next event that has data: its name and its document."""
        name, data = "message", None
        for line in self._lines:
            field, _, value = line.partition(": ")
            if field == "id":
                self.last_id = value
            elif field == "event":
                name = value
            elif field == "data":
                data = json.loads(value)
            elif not line and data is not None:
                return name, data
        raise AssertionError("the stream has ended")

    def values(self, count: int) -> list[Any]:
        return [self.next()[1]["value"]["data"] for _ in range(count)]


def stream(cluster: httpx.Client, topic: str, last_id: str = "", **asked: str) -> Any:
    headers = {"accept": "text/event-stream"} | ({"last-event-id": last_id} if last_id else {})
    path = f"/topics/{topic}/records:stream"
    return cluster.stream("GET", path, params=asked, headers=headers)


def opened(got: httpx.Response) -> Events:
    """Events of a stream that has begun: what is produced from now on comes."""
    assert got.status_code == 200
    lines = got.iter_lines()
    events = Events(lines)
    for line in lines:
        if line.startswith("id: "):
            events.last_id = line.removeprefix("id: ")
            return events
    raise AssertionError("the stream did not begin")


def test_records_come_as_they_are_produced(cluster: httpx.Client, topic: str) -> None:
    produce(cluster, topic, "before")
    with stream(cluster, topic) as got:
        assert got.headers["content-type"] == "text/event-stream; charset=utf-8"
        events = opened(got)
        for number in range(3):
            produce(cluster, topic, number)
            assert events.values(1) == [number]
        assert events.last_id == "0-4"


def test_the_past_comes_first_then_the_present(
    cluster: httpx.Client, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(3)
    produce(cluster, topic, *range(1200))
    with stream(cluster, topic, **{"from": "earliest"}) as got:
        events = opened(got)
        assert sorted(events.values(1200)) == list(range(1200))
        produce(cluster, topic, "now")
        assert events.values(1) == ["now"]


def test_a_broken_stream_resumes_where_it_was(
    cluster: httpx.Client, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(2)
    with stream(cluster, topic) as got:
        events = opened(got)
        produce(cluster, topic, *range(5))
        seen = events.values(3)
    produce(cluster, topic, *range(5, 10))
    with stream(cluster, topic, events.last_id) as got:
        again = opened(got)
        assert again.last_id == events.last_id
        seen += again.values(7)
    assert sorted(seen) == list(range(10))


def test_a_stream_begins_at_a_time(cluster: httpx.Client, topic: str) -> None:
    produce(cluster, topic, "old")
    (new,) = produce(cluster, topic, "new")
    with stream(cluster, topic, **{"from": new["timestamp"]}) as got:
        assert opened(got).values(1)[0] in ("old", "new")
    with stream(cluster, topic, **{"from": "0-1"}) as got:
        assert opened(got).values(1) == ["new"]


def test_a_key_chooses(cluster: httpx.Client, topic: str) -> None:
    body = "".join(
        json.dumps({"key": {"type": "STRING", "data": key}, "value": {"type": "JSON", "data": n}})
        for n, key in enumerate(["a", "b", "a", "c"])
    )
    headers = {"content-type": "application/json"}
    with stream(cluster, topic, key="a", **{"from": "earliest"}) as got:
        events = opened(got)
        cluster.post(f"/topics/{topic}/records", content=body, headers=headers)
        assert events.values(2) == [0, 2]


def test_lines_of_json_by_accept(cluster: httpx.Client, topic: str) -> None:
    produce(cluster, topic, "line\u2028sep\n", 2)
    path = f"/topics/{topic}/records:stream?from=earliest"
    with cluster.stream("GET", path, headers={"accept": "application/x-ndjson"}) as got:
        text = b""
        for piece in got.iter_raw():
            text += piece
            if text.count(b"\n") == 2:
                break
    found = [json.loads(line) for line in text.strip().split(b"\n")]
    assert [one["value"]["data"] for one in found] == ["line\u2028sep\n", 2]
    assert cluster.get(path, headers={"accept": "text/html"}).status_code == 406


def socket_address(cluster: httpx.Client, topic: str) -> str:
    base = str(cluster.base_url).rstrip("/").replace("http://", "ws://")
    return f"{base}/topics/{topic}/records:stream"


def test_a_websocket_on_the_same_path(cluster: httpx.Client, topic: str) -> None:
    produce(cluster, topic, "a\u2028b")
    with connect(socket_address(cluster, topic) + "?from=earliest") as socket:
        assert json.loads(socket.recv(60))["value"]["data"] == "a\u2028b"
        produce(cluster, topic, 2)
        assert json.loads(socket.recv(60))["offset"] == 1
    with connect(socket_address(cluster, "absent")) as socket:
        assert json.loads(socket.recv(60))["error_code"] == 40403
        with pytest.raises(ConnectionClosed):
            socket.recv(60)


def test_a_page_of_another_host_gets_no_websocket(cluster: httpx.Client, topic: str) -> None:
    with pytest.raises(InvalidStatus, match="403"):
        connect(socket_address(cluster, topic), origin="http://elsewhere.example").close()


def test_a_slow_reader_is_cut_and_told_where_it_can_resume(
    cluster: httpx.Client, topic: str
) -> None:
    path = f"/topics/{topic}/records:stream"
    with stream(cluster, topic) as other, OpenRequest(cluster, path, method="GET") as slow:
        fast = opened(other)
        slow.head()
        slow.chunk()
        produced = 0
        for _ in range(50):  # 10 MB: more than the kernel keeps for a reader that does not read.
            produce(cluster, topic, *["x" * 5000] * 40)
            produced += 40
            fast.values(40)
        text = slow.rest().decode()
    *_, last = (block for block in text.split("\n\n") if block.strip())
    name, data = last.splitlines()
    assert name == "event: slow"
    said = json.loads(data.removeprefix("data: "))
    assert said["reason"] == "The reader did not keep up."
    received = text.count("\ndata: ") - 1
    assert said["next"] == f"0-{received}"
    assert received < produced
    with stream(cluster, topic, said["next"]) as got:
        assert opened(got).next()[1]["offset"] == received


def test_partitions_that_are_new_are_streamed_too(cluster: httpx.Client, topic: str) -> None:
    with stream(cluster, topic) as got:
        events = opened(got)
        grown = cluster.patch(f"/topics/{topic}", json={"partitions_count": 2})
        assert grown.status_code == 200
        headers = {"content-type": "application/json"}
        body = b"".join([record("old", partition_id=0), record("new", partition_id=1)])
        told = cluster.post(f"/topics/{topic}/records", content=body, headers=headers)
        assert told.text.count('"error_code":200') == 2, told.text
        assert sorted(events.values(2)) == ["new", "old"]
        assert events.last_id == "0-1,1-1"


def test_a_stream_ends_with_its_topic(cluster: httpx.Client, topic: str) -> None:
    with stream(cluster, topic) as got:
        events = opened(got)
        assert cluster.delete(f"/topics/{topic}").status_code == 204
        name, _ = events.next()
        assert name in ("gone", "failed")


@pytest.mark.parametrize(
    ("asked", "status"),
    [({"from": "yesterday"}, 400), ({"key_base64": "?"}, 400), ({"key_format": "xml"}, 400)],
)
def test_what_makes_no_sense_is_refused(
    cluster: httpx.Client, topic: str, asked: dict[str, str], status: int
) -> None:
    got = cluster.get(f"/topics/{topic}/records:stream", params=asked)
    assert (got.status_code, got.json()["error_code"]) == (status, 400)
    wrong = cluster.get(f"/topics/{topic}/records:stream", headers={"last-event-id": "x"})
    assert wrong.status_code == 400


def test_streaming_an_absent_topic_does_not_make_it(cluster: httpx.Client) -> None:
    assert cluster.get("/topics/absent/records:stream").json()["error_code"] == 40403
    assert cluster.get("/topics/absent").status_code == 404


def test_a_proxy_that_stops_ends_its_streams_and_says_so(
    broker: BrokerProcess, cluster: httpx.Client, topic: str, tmp_path: Any
) -> None:
    with RestProcess(tmp_path, broker.address) as proxy:
        proxy.start()
        base = str(cluster.base_url).replace(f":{cluster.base_url.port}", f":{proxy.port}")
        with httpx.Client(base_url=base, timeout=120) as client, stream(client, topic) as got:
            events = opened(got)
            with OpenRequest(client, f"/topics/{topic}/records") as producing:
                produce(client, topic, 1)
                assert events.values(1) == [1]
                assert proxy.stop() == 0
                assert events.next()[0] == "stopping"
                producing.head()
                assert producing.rest() == b""
        assert eventually(lambda: proxy.tracebacks() == {})
