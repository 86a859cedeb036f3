"""Streamed produce: records in a body without end, receipts while it is still coming."""

import json
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.integration.rest.v3.talk import OpenRequest, produce, receipts, record
from tests.support.broker import BrokerProcess
from tests.support.rest import RestProcess
from tests.support.waiting import eventually

AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]})
PROTOBUF = 'syntax = "proto3"; message R { int32 n = 1; }'
JSON_SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})


def stored(broker: BrokerProcess, topic: str, count: int) -> list[Any]:
    """The first records of a partition, read by somebody who knows nothing of us."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "unused"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[Any] = []
        while len(found) < count:
            message = consumer.poll(60)
            assert message is not None, f"{len(found)} of {count} records"
            assert message.error() is None
            found.append(message)
        return found
    finally:
        consumer.close()


def end_of(cluster: httpx.Client, topic: str) -> int:
    found = cluster.get(f"/topics/{topic}/partitions/0/offset").json()
    return int(found["latest_offset"])


def test_each_receipt_comes_while_the_body_is_open(cluster: httpx.Client, topic: str) -> None:
    with OpenRequest(cluster, f"/topics/{topic}/records") as request:
        request.send(record(0))
        assert request.head().startswith("HTTP/1.1 200 ")
        for number in range(3):
            (receipt,) = receipts(request.chunk())
            assert (receipt["error_code"], receipt["offset"]) == (200, number)
            request.send(record(number + 1))
        request.end()
        (last,) = receipts(request.rest())
        assert last["offset"] == 3


def test_what_was_sent_is_what_is_stored(
    broker: BrokerProcess, cluster: httpx.Client, topic: str
) -> None:
    body = record(
        {"a": [1, "ä"]},
        key={"type": "STRING", "data": "k"},
        headers=[{"name": "h", "value": "QQ=="}, {"name": "n", "value": None}],
        partition_id=0,
        timestamp="2021-02-05T19:14:42.123Z",
    )
    headers = {"content-type": "application/json"}
    got = cluster.post(f"/topics/{topic}/records", content=body, headers=headers)
    assert got.json() == {
        "error_code": 200,
        "cluster_id": str(cluster.base_url).rstrip("/").rpartition("/")[2],
        "topic_name": topic,
        "partition_id": 0,
        "offset": 0,
        "timestamp": "2021-02-05T19:14:42.123Z",
        "key": {"type": "STRING", "size": 1},
        "value": {"type": "JSON", "size": 14},
    }
    (found,) = stored(broker, topic, 1)
    assert (found.key(), found.value()) == (b"k", '{"a":[1,"ä"]}'.encode())
    assert found.headers() == [("h", b"A"), ("n", None)]
    assert found.timestamp()[1] == 1_612_552_482_123


def test_a_body_cut_at_each_byte_is_the_same_body(cluster: httpx.Client, topic: str) -> None:
    body = b"".join(
        [record('}{"\\'), b" \n", record({"a": {"b": "\u00e4\\"}}), record(None), b"\r\n"]
    )
    with httpx.Client(timeout=120) as client:
        url = f"{cluster.base_url}topics/{topic}/records"
        for cut in range(1, len(body)):
            pieces = iter([body[:cut], body[cut:]])
            got = client.post(url, content=pieces, headers={"content-type": "application/json"})
            assert [one["error_code"] for one in receipts(got.text)] == [200] * 3, cut
    assert end_of(cluster, topic) == 3 * (len(body) - 1)


def test_a_client_that_goes_at_any_byte_costs_no_whole_record(
    cluster: httpx.Client, topic: str
) -> None:
    one = record("x")
    body = one * 2
    for cut in range(1, len(body) + 1):
        with OpenRequest(cluster, f"/topics/{topic}/records") as request:
            request.send(body[:cut])
            if cut >= len(one):
                # It read something of us, so what it sent before has arrived.
                request.head()
                request.chunk()
    whole = sum(cut // len(one) for cut in range(1, len(body) + 1))
    eventually(lambda: end_of(cluster, topic) == whole, what=f"{whole} records")


def test_errors_are_receipts_in_their_place(cluster: httpx.Client, topic: str) -> None:
    body = b"\n".join(
        [
            record(1),
            b'{"value":{"type":"BINARY","data":"?"}}',
            b"{not json}",
            record(2, partition_id=9),
            record(3, partition_id=-1),
            b'{"value":{"type":"AVRO","schema_id":12345,"data":{}}}',
            b'{"value":{"type":"STRING","data":"\\ud800"}}',
            record(4),
        ]
    )
    headers = {"content-type": "application/json"}
    got = cluster.post(f"/topics/{topic}/records", content=body, headers=headers)
    codes = [one["error_code"] for one in receipts(got.text)]
    assert codes[0] == codes[7] == 200
    assert codes[1:7] == [422, 400, 40403, 40402, 422, 400]
    assert end_of(cluster, topic) == 2


@pytest.mark.parametrize("after", [b"[1]", b"nonsense", b'{"value":'])
def test_where_records_cannot_be_told_apart_the_stream_ends(
    cluster: httpx.Client, topic: str, after: bytes
) -> None:
    headers = {"content-type": "application/json"}
    got = cluster.post(f"/topics/{topic}/records", content=record(1) + after, headers=headers)
    assert [one["error_code"] for one in receipts(got.text)] == [200, 400]


def test_a_record_that_is_too_large_ends_the_stream_before_it_is_all_there(
    cluster: httpx.Client, topic: str
) -> None:
    with OpenRequest(cluster, f"/topics/{topic}/records") as request:
        request.send(record(1) + b'{"value":{"type":"STRING","data":"')
        request.head()
        request.chunk()
        for _ in range(3):
            request.send(b"x" * 40_000)
        (refused,) = receipts(request.rest())
        assert refused == {
            "error_code": 400,
            "message": "A record is larger than 100000 bytes.",
        }


def test_a_topic_that_does_not_exist_is_told_for_each_record(cluster: httpx.Client) -> None:
    assert [one["error_code"] for one in produce(cluster, "no-such-topic", 1, 2)] == [40403] * 2


@pytest.mark.parametrize(
    ("kind", "schema"), [("AVRO", AVRO), ("PROTOBUF", PROTOBUF), ("JSONSCHEMA", JSON_SCHEMA)]
)
def test_values_with_schemas(
    broker: BrokerProcess, cluster: httpx.Client, topic: str, kind: str, schema: str
) -> None:
    first = {"value": {"type": kind, "schema": schema, "data": {"n": 1}}}
    headers = {"content-type": "application/json"}

    def send(body: dict[str, Any]) -> Any:
        return cluster.post(f"/topics/{topic}/records", json=body, headers=headers).json()

    value = send(first)["value"]
    assert (value["type"], value["subject"], value["schema_version"]) == (
        kind,
        f"{topic}-value",
        1,
    )
    by_id = send({"value": {"schema_id": value["schema_id"], "data": {"n": 2}}})
    latest = send({"value": {"data": {"n": 3}}})
    by_version = send(
        {"value": {"schema_version": 1, "subject": f"{topic}-value", "data": {"n": 4}}}
    )
    assert by_id["value"]["schema_id"] == value["schema_id"]
    assert (latest["value"], by_version["value"]) == (value, value)
    refused = send({"value": {"data": {"n": "no number"}}})
    assert refused["error_code"] == 42203
    found = stored(broker, topic, 4)
    assert all(one.value()[:5] == b"\0" + value["schema_id"].to_bytes(4) for one in found)
    shown = cluster.get(f"/topics/{topic}/partitions/0/records").json()["data"]
    assert [one["value"]["data"]["n"] for one in shown] == [1, 2, 3, 4]
    assert {one["value"]["type"] for one in shown} == {kind}


def test_a_batch_tells_what_became_of_each_entry(cluster: httpx.Client, topic: str) -> None:
    entries = [
        {"id": "a", "value": {"type": "STRING", "data": "x"}},
        {"id": "b", "value": {"type": "STRING", "data": 5}},
    ]
    got = cluster.post(f"/topics/{topic}/records:batch", json={"entries": entries})
    assert got.status_code == 207
    (success,), (failure,) = got.json()["successes"], got.json()["failures"]
    assert (success["id"], success["offset"]) == ("a", 0)
    assert (failure["id"], failure["error_code"]) == ("b", 422)


@pytest.mark.parametrize(
    "entries", [[], [{"id": "a"}, {"id": "a"}], [{"value": None}], [{"id": "x" * 81}], "x"]
)
def test_a_batch_that_makes_no_sense_is_refused_whole(
    cluster: httpx.Client, topic: str, entries: Any
) -> None:
    got = cluster.post(f"/topics/{topic}/records:batch", json={"entries": entries})
    assert got.status_code in (400, 422)
    assert end_of(cluster, topic) == 0


def test_a_client_that_reads_no_receipts_is_not_read_from_either(
    proxy: RestProcess, cluster: httpx.Client, topic: str
) -> None:
    piece = b"".join([record("x" * 50)] * 300)
    chunk = b"%x\r\n%b\r\n" % (len(piece), piece)
    sent = 0
    with OpenRequest(cluster, f"/topics/{topic}/records") as request:
        request.socket.settimeout(3)
        with pytest.raises(TimeoutError):
            while sent < 200_000:
                request.socket.sendall(chunk)
                sent += 300
    assert proxy.process is not None
    assert psutil.Process(proxy.process.pid).memory_info().rss < 400 << 20
    assert cluster.get("/topics").status_code == 200, "others are served"


def test_many_streams_at_once_each_get_their_own_receipts(
    cluster: httpx.Client, topic: str
) -> None:
    requests = [OpenRequest(cluster, f"/topics/{topic}/records") for _ in range(20)]
    for round_ in range(5):
        for request in requests:
            request.send(record(round_) * 3)
    offsets: list[int] = []
    for request in requests:
        request.end()
        request.head()
        told = receipts(request.rest())
        assert len(told) == 15
        offsets += [one["offset"] for one in told]
        request.close()
    assert sorted(offsets) == list(range(300))


def test_curl_that_waits_to_be_told_to_go_on_is_told(
    cluster: httpx.Client, topic: str, tmp_path: Path
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    file = tmp_path / "records"
    file.write_bytes(record("x" * 1000) * 2000)
    url = str(cluster.base_url).rstrip("/") + f"/topics/{topic}/records"
    headers = ["-H", "Content-Type: application/json", "-H", "Expect: 100-continue"]
    ran = subprocess.run(
        ["curl", "-sS", "-X", "POST", *headers, "-T", str(file), url],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    told = receipts(ran.stdout)
    assert [one["offset"] for one in told] == list(range(2000))


def test_a_page_of_another_host_cannot_produce(cluster: httpx.Client, topic: str) -> None:
    headers = {"origin": "http://elsewhere.example"}
    got = cluster.post(f"/topics/{topic}/records", content=record(1), headers=headers)
    assert (got.status_code, got.json()["error_code"]) == (403, 403)
    assert end_of(cluster, topic) == 0


def test_a_half_closed_connection_still_gets_its_receipts(
    cluster: httpx.Client, topic: str
) -> None:
    with OpenRequest(cluster, f"/topics/{topic}/records") as request:
        request.send(record(1))
        request.end()
        request.head()
        assert [one["offset"] for one in receipts(request.rest())] == [0]
        request.socket.shutdown(socket.SHUT_WR)
