"""What a client sends wrong gets a code and a sentence, stores nothing and disturbs nobody."""

import json
import socket
from typing import Any

import httpx
import pytest
from tests.integration.rest.v2.asking import V2, error_of, get_with_body, media, post, produce
from tests.support.rest import RestProcess

BINARY = media("binary")


@pytest.fixture
def instance(client: httpx.Client) -> Any:
    base = client.post("/consumers/bad-input").json()["base_uri"]
    yield base
    client.delete(base)


def end_of(client: httpx.Client, topic: str) -> int:
    found = client.get(f"/topics/{topic}/partitions/0/offsets").json()
    return int(found.get("end_offset", 0))


@pytest.mark.parametrize(
    "value", ["not base64", "Q", "QUJD=", "QU JD", 5, True, ["QUJD"], {"a": 1}, "QUJDé"]
)
def test_broken_base64_stores_nothing(client: httpx.Client, topic: str, value: object) -> None:
    got = produce(client, topic, [{"value": "QUJD"}, {"value": value}], "binary")
    assert error_of(got) == (422, 422)
    assert error_of(produce(client, topic, [{"key": value, "value": ""}], "binary")) == (422, 422)
    assert end_of(client, topic) == 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", (400, 400)),
        (b"{", (400, 400)),
        (b"[]", (400, 400)),
        (b"\xff", (400, 400)),
        (b'{"records":[{"value":NaN}]}', (400, 400)),
        (b'{"records":[{"value":"\\ud800"}]}', (400, 400)),
        (b"[" * 100_000, (400, 400)),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, (400, 400)),
        (b"{}", (422, 422)),
        (b'{"records":[]}', (422, 422)),
        (b'{"records":{}}', (422, 422)),
        (b'{"records":[1]}', (422, 422)),
        (b'{"records":[{"value":"","extra":1}]}', (422, 422)),
        (b'{"records":[{"value":""}],"extra":1}', (422, 422)),
        (b'{"records":[{"value":"","partition":-1}]}', (422, 422)),
        (b'{"records":[{"value":"","partition":"0"}]}', (422, 422)),
        (b'{"records":[{"value":"","partition":1e9}]}', (422, 422)),
        (b'{"records":[{"value":"","partition":99999999999999999999}]}', (422, 422)),
        (b'{"records":[{"value":""}],"value_schema_id":-1}', (422, 422)),
        (b'{"records":[{"value":""}],"value_schema":7}', (422, 422)),
    ],
)
def test_bodies_that_make_no_sense(
    client: httpx.Client, topic: str, body: bytes, expected: tuple[int, int]
) -> None:
    got = client.post(f"/topics/{topic}", content=body, headers={"content-type": BINARY})
    assert error_of(got) == expected
    assert end_of(client, topic) == 0


@pytest.mark.parametrize(
    "kind", ["application/json", "text/plain", "application/vnd.kafka.v9+json"]
)
def test_a_body_without_a_format_is_not_taken(client: httpx.Client, topic: str, kind: str) -> None:
    got = client.post(
        f"/topics/{topic}", json={"records": [{"value": ""}]}, headers={"content-type": kind}
    )
    assert error_of(got) == (415, 415)
    refused = client.get("/topics", headers={"accept": "text/html"})
    assert error_of(refused) == (406, 406)
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert error_of(client.post("/consumers/g", content=b"{}", headers=form)) == (415, 415)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"format": "xml"}, (422, 422)),
        ({"format": "string"}, (422, 422)),
        ({"format": 7}, (422, 422)),
        ({"auto.offset.reset": "soon"}, (422, 42204)),
        ({"auto.commit.enable": "maybe"}, (422, 42204)),
        ({"consumer.request.timeout.ms": -5}, (422, 42204)),
        ({"consumer.request.timeout.ms": "x"}, (422, 422)),
        ({"fetch.min.bytes": -2}, (422, 40001)),
        ({"fetch.min.bytes": 10_000_001}, (422, 40001)),
        ({"unknown": 1}, (422, 422)),
        ({"name": "n" * 300}, (422, 422)),
        ({"name": 7}, (422, 422)),
    ],
)
def test_consumers_that_cannot_be(
    client: httpx.Client, wanted: dict[str, object], expected: tuple[int, int]
) -> None:
    assert error_of(post(client, "/consumers/wrong", wanted)) == expected


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("subscription", {"topics": "t"}),
        ("subscription", {"topics": [1]}),
        ("subscription", {"topic_pattern": "("}),
        ("subscription", {"topic_pattern": ""}),
        ("subscription", {"other": []}),
        ("assignments", {"partitions": [{"topic": "t"}]}),
        ("assignments", {"partitions": [{"partition": 0}]}),
        ("assignments", {"partitions": [{"topic": "t", "partition": -1}]}),
        ("assignments", {"partitions": 5}),
        ("positions", {"offsets": [{"topic": "t", "partition": 0}]}),
        ("positions", {"offsets": [{"topic": "t", "partition": 0, "offset": -1}]}),
        ("positions", {"offsets": [{"topic": "t", "partition": 0, "offset": 2**63}]}),
        ("offsets", {"offsets": [{"topic": "t", "partition": 0, "offset": 1, "metadata": 5}]}),
    ],
)
def test_orders_to_an_instance_that_make_no_sense(
    client: httpx.Client, instance: str, path: str, document: dict[str, object]
) -> None:
    assert error_of(post(client, f"{instance}/{path}", document)) == (422, 422)


def test_what_needs_a_body_says_so(client: httpx.Client, instance: str) -> None:
    for path in ("subscription", "assignments", "positions", "positions/end"):
        assert client.post(f"{instance}/{path}").status_code == 422
    assert error_of(client.get(f"{instance}/records")) == (500, 50002)
    assert error_of(client.get(f"{instance}/records", params={"timeout": "x"})) == (404, 404)
    assert error_of(get_with_body(client, f"{instance}/offsets", {"partitions": 1})) == (422, 422)


def test_every_route_of_an_unknown_instance_is_not_found(client: httpx.Client) -> None:
    base = "/consumers/g/instances/nobody"
    partitions = {"partitions": [{"topic": "t", "partition": 0}]}
    offsets = {"offsets": [{"topic": "t", "partition": 0, "offset": 1}]}
    asked: list[tuple[str, str, object]] = [
        ("DELETE", "", None),
        ("POST", "/subscription", {"topics": ["t"]}),
        ("GET", "/subscription", None),
        ("DELETE", "/subscription", None),
        ("POST", "/assignments", partitions),
        ("GET", "/assignments", None),
        ("POST", "/positions", offsets),
        ("POST", "/positions/beginning", partitions),
        ("POST", "/positions/end", partitions),
        ("GET", "/records", None),
        ("POST", "/offsets", offsets),
        ("GET", "/offsets", partitions),
    ]
    for method, path, document in asked:
        headers = {"content-type": V2, "accept": V2}
        content = None if document is None else json.dumps(document)
        got = client.request(method, base + path, content=content, headers=headers)
        assert error_of(got) == (404, 40403), (method, path)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(
    client: httpx.Client, proxy: RestProcess, topic: str
) -> None:
    head = f"POST /topics/{topic} HTTP/1.1\r\nhost: x\r\ncontent-type: {BINARY}\r\n"
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as raw:
        raw.sendall(f"{head}content-length: 99999999999\r\n\r\n".encode())
        assert raw.recv(4096).startswith(b"HTTP/1.1 413")
    before = proxy.rss_bytes()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as raw:
        raw.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
        try:
            for _ in range(2000):
                raw.sendall(piece)
        except OSError:
            pass  # It closed while we were sending.
    assert proxy.rss_bytes() - before < 100 << 20
    assert client.get("/brokers").status_code == 200


def test_a_body_cut_anywhere_stores_nothing(
    client: httpx.Client, proxy: RestProcess, topic: str
) -> None:
    assert produce(client, topic, [{"value": "QUJD"}], "binary").status_code == 200
    body = b'{"records":[{"value":"QUJD"},{"value":"QUJD"}]}'
    head = (
        f"POST /topics/{topic} HTTP/1.1\r\nhost: x\r\ncontent-type: {BINARY}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    ).encode()
    for cut in range(0, len(body), 3):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as raw:
            raw.sendall(head + body[:cut])
    assert client.get("/brokers").status_code == 200
    assert end_of(client, topic) == 1


def test_names_with_slashes_and_percent_signs_stay_names(client: httpx.Client) -> None:
    got = client.post(
        "/topics/a%2Fb", json={"records": [{"value": ""}]}, headers={"content-type": BINARY}
    )
    assert error_of(got) == (404, 40401)
    assert error_of(client.get("/topics/%25%00/partitions")) == (404, 40401)
    assert error_of(client.get(f"/topics/{'n' * 300}")) == (404, 40401)
