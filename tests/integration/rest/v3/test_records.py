"""Records of a partition by offset, without a consumer."""

import threading
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer
from tests.integration.rest.v3.talk import produce
from tests.support.broker import BrokerProcess


def read(cluster: httpx.Client, topic: str, **asked: object) -> Any:
    got = cluster.get(f"/topics/{topic}/partitions/0/records", params=asked)
    assert got.status_code == 200, got.text
    return got.json()


def values(page: Any) -> list[Any]:
    return [one["value"]["data"] for one in page["data"]]


def test_pages_follow_each_other_to_the_end(cluster: httpx.Client, topic: str) -> None:
    produce(cluster, topic, *range(10))
    page = read(cluster, topic, limit=4)
    seen = values(page)
    while page["next_offset"] < page["end_offset"]:
        page = cluster.get(page["metadata"]["next"]).json()
        seen += values(page)
    assert seen == list(range(10))
    assert values(cluster.get(page["metadata"]["next"]).json()) == []


def test_a_read_begins_at_any_offset_and_inside_of_batches(
    broker: BrokerProcess, cluster: httpx.Client, topic: str
) -> None:
    settings = {"bootstrap.servers": broker.address, "linger.ms": 60_000, "compression.type": "lz4"}
    producer = Producer(settings)
    for number in range(20):
        producer.produce(topic, str(number).encode())
    assert producer.flush(60) == 0
    for offset in range(21):
        assert values(read(cluster, topic, offset=offset)) == list(range(offset, 20))
    assert values(read(cluster, topic, offset=3, limit=2)) == [3, 4]


def test_an_aborted_transaction_is_not_shown(
    broker: BrokerProcess, cluster: httpx.Client, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "of-test"})
    producer.init_transactions(60)
    for word in ("void", "real"):
        producer.begin_transaction()
        producer.produce(topic, word.encode())
        producer.flush(60)
        if word == "void":
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    page = read(cluster, topic)
    assert values(page) == ["real"]
    assert page["next_offset"] == 4


def test_waiting_ends_as_soon_as_a_record_comes(cluster: httpx.Client, topic: str) -> None:
    found: list[Any] = []

    def wait() -> None:
        with httpx.Client(base_url=cluster.base_url, timeout=120) as client:
            found.append(read(client, topic, offset="latest", timeout=30000))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while waiting.is_alive():
        produce(cluster, topic, "news")
        waiting.join(0.5)
    assert values(found[0])[0] == "news"


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"offset": "7"}, 416),
        ({"offset": "-1"}, 400),
        ({"offset": "x"}, 400),
        ({"limit": "0"}, 400),
        ({"limit": "10001"}, 400),
        ({"timeout": "999999"}, 400),
        ({"value_format": "xml"}, 400),
        ({"offset": "9" * 30}, 400),
    ],
)
def test_what_makes_no_sense_is_refused(
    cluster: httpx.Client, topic: str, asked: dict[str, str], status: int
) -> None:
    got = cluster.get(f"/topics/{topic}/partitions/0/records", params=asked)
    assert got.status_code == status, got.text
    assert got.json()["message"]


def test_a_partition_that_is_not_there_is_not_made(cluster: httpx.Client, topic: str) -> None:
    for path in (f"/topics/{topic}/partitions/5/records", "/topics/absent/partitions/0/records"):
        assert cluster.get(path).json()["error_code"] == 40403
    assert cluster.get("/topics/absent").status_code == 404
