"""The cluster's resources, asked for by curl and httpx."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer
from tests.integration.rest.v3.talk import produce
from tests.support.broker import BrokerProcess
from tests.support.rest import RestProcess
from tests.support.waiting import eventually


def error(got: httpx.Response) -> tuple[int, int]:
    """Status and code of a refusal, which always has a sentence."""
    document = got.json()
    assert set(document) == {"error_code", "message"}
    assert document["message"]
    return got.status_code, document["error_code"]


def curl(*arguments: str) -> Any:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    ran = subprocess.run(["curl", "-sS", *arguments], capture_output=True, check=True, timeout=120)
    return json.loads(ran.stdout)


def test_every_address_that_a_document_names_can_be_asked(
    cluster: httpx.Client, new_topic: Callable[..., str]
) -> None:
    new_topic(2)
    wanted, seen = [str(cluster.base_url).rstrip("/")], set()
    kinds = set()
    while wanted:
        at = wanted.pop()
        # One of each kind is enough, and nobody moves and no rules are kept here.
        if at in seen or "/configs/" in at or "/broker-configs/" in at:
            continue
        seen.add(at)
        got = cluster.get(at)
        if got.status_code != 200:
            assert at.endswith(("/acls", "/reassignment")), (at, got.text)
            continue
        document = got.json()
        kinds.add(document["kind"])
        wanted += [
            one["related"]
            for one in document.values()
            if isinstance(one, dict) and "related" in one
        ]
        assert document["metadata"]["self"] == at
        data = document.get("data", [])
        assert all(one["kind"] + "List" == document["kind"] for one in data)
        wanted += [one["metadata"]["self"] for one in data[:3]]
    assert kinds >= {
        "KafkaCluster", "KafkaBroker", "KafkaBrokerList", "KafkaTopic", "KafkaTopicList",
        "KafkaPartition", "KafkaPartitionList", "KafkaReplica", "KafkaReplicaList",
        "KafkaBrokerConfigList", "KafkaClusterConfigList", "KafkaTopicConfigList",
        "KafkaConsumerGroupList", "KafkaReassignmentList",
    }  # fmt: skip


def test_curl_creates_looks_at_enlarges_and_deletes_a_topic(cluster: httpx.Client) -> None:
    at = str(cluster.base_url).rstrip("/")
    json_type = ("-H", "Content-Type: application/json")
    body = {
        "topic_name": "by-curl",
        "partitions_count": 2,
        "configs": [{"name": "retention.ms", "value": "60000"}],
    }
    made = curl(*json_type, "-d", json.dumps(body), f"{at}/topics")
    assert (made["topic_name"], made["partitions_count"]) == ("by-curl", 2)
    found = curl(f"{at}/topics/by-curl/configs/retention.ms")
    assert (found["value"], found["source"]) == ("60000", "DYNAMIC_TOPIC_CONFIG")
    larger = curl("-X", "PATCH", *json_type, "-d", '{"partitions_count":3}', f"{at}/topics/by-curl")
    assert larger["partitions_count"] == 3
    assert len(curl(f"{at}/topics/by-curl/partitions")["data"]) == 3
    assert cluster.delete("/topics/by-curl").status_code == 204
    assert error(cluster.get("/topics/by-curl")) == (404, 40403)


def test_a_topic_that_is_only_tried_is_not_created(cluster: httpx.Client) -> None:
    body = {"topic_name": "tried", "partitions_count": 4, "validate_only": True}
    got = cluster.post("/topics", json=body)
    assert (got.status_code, got.json()["partitions_count"]) == (200, 4)
    assert error(cluster.get("/topics/tried")) == (404, 40403)


def test_a_new_topic_is_at_the_address_that_is_told(cluster: httpx.Client) -> None:
    got = cluster.post("/topics", json={"topic_name": "located"})
    assert got.status_code == 201
    assert cluster.get(got.headers["location"]).json() == got.json()


def test_settings_of_a_topic_are_set_reset_and_changed_together(
    cluster: httpx.Client, topic: str
) -> None:
    at = f"/topics/{topic}/configs"

    def value(name: str) -> Any:
        return cluster.get(f"{at}/{name}").json()["value"]

    assert cluster.put(f"{at}/retention.ms", json={"value": "1234"}).status_code == 204
    assert value("retention.ms") == "1234"
    changes = [
        {"name": "retention.ms", "operation": "DELETE"},
        {"name": "cleanup.policy", "value": "compact"},
    ]
    trial = {"data": changes, "validate_only": True}
    assert cluster.post(f"{at}:alter", json=trial).status_code == 204
    assert value("retention.ms") == "1234"
    assert cluster.post(f"{at}:alter", json={"data": changes}).status_code == 204
    assert (value("retention.ms"), value("cleanup.policy")) == ("604800000", "compact")
    assert cluster.delete(f"{at}/cleanup.policy").status_code == 204
    assert value("cleanup.policy") == "delete"
    wrong = {"data": [{"name": "cleanup.policy", "value": "burn"}]}
    assert error(cluster.post(f"{at}:alter", json=wrong)) == (400, 40002)
    unknown = {"data": [{"name": "no.such", "value": "1"}]}
    assert error(cluster.post(f"{at}:alter", json=unknown)) == (404, 404)


def test_settings_of_brokers_are_of_one_or_of_all(cluster: httpx.Client) -> None:
    one, all_ = "/brokers/0/configs", "/broker-configs"
    name = "log.cleaner.backoff.ms"
    assert cluster.put(f"{all_}/{name}", json={"value": "11000"}).status_code == 204
    assert cluster.put(f"{one}/{name}", json={"value": "12000"}).status_code == 204
    found = cluster.get(f"{one}/{name}").json()
    assert (found["value"], found["source"]) == ("12000", "DYNAMIC_BROKER_CONFIG")
    assert cluster.get(f"{all_}/{name}").json()["config_type"] == "BROKER"
    dynamic = cluster.get("/brokers/-/configs").json()["data"]
    assert name in {entry["name"] for entry in dynamic}
    for at in (one, all_):
        assert cluster.delete(f"{at}/{name}").status_code == 204
    assert cluster.get(f"{one}/{name}").json()["is_default"]
    assert error(cluster.get("/brokers/77/configs")) == (404, 404)


@contextmanager
def consuming(broker: BrokerProcess, group: str, topic: str, count: int) -> Iterator[None]:
    """A consumer that has read and committed so many records, and stays."""
    settings = {
        "bootstrap.servers": broker.address,
        "group.id": group,
        "client.id": "reader",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        read = 0
        while read < count:
            message = consumer.poll(60)
            assert message is not None
            assert message.error() is None
            read += 1
            consumer.commit(message, asynchronous=False)
        yield
    finally:
        consumer.close()


def test_a_group_its_consumers_and_how_far_they_are_behind(
    broker: BrokerProcess, cluster: httpx.Client, topic: str
) -> None:
    produce(cluster, topic, *range(10))
    at = "/consumer-groups/readers"
    with consuming(broker, "readers", topic, 4):
        group = eventually(
            lambda: (
                (got := cluster.get(at)).status_code == 200
                and got.json()["state"] == "STABLE"
                and got.json()
            )
        )
        assert (group["is_simple"], group["partition_assignor"]) == (False, "range")
        (member,) = cluster.get(f"{at}/consumers").json()["data"]
        assert member["client_id"] == "reader"
        (assignment,) = cluster.get(member["assignments"]["related"]).json()["data"]
        assert (assignment["topic_name"], assignment["partition_id"]) == (topic, 0)
        assert cluster.get(assignment["metadata"]["self"]).json() == assignment
        lag = cluster.get(assignment["lag"]["related"]).json()
        assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (4, 10, 6)
        assert lag["consumer_id"] == member["consumer_id"]
        assert cluster.get(f"{at}/lags").json()["data"] == [lag]
        summary = cluster.get(f"{at}/lag-summary").json()
        assert (summary["max_lag"], summary["total_lag"]) == (6, 6)
        listed = cluster.get("/consumer-groups").json()["data"]
        assert "readers" in {one["consumer_group_id"] for one in listed}
    (left,) = cluster.get(f"{at}/lags").json()["data"]
    assert (left["consumer_id"], left["lag"]) == ("", 6)
    assert error(cluster.get(f"{at}/consumers/nobody")) == (404, 404)
    assert error(cluster.get("/consumer-groups/none")) == (404, 404)


def test_brokers_without_rules_say_so(cluster: httpx.Client) -> None:
    rule = {
        "resource_type": "TOPIC", "resource_name": "x", "pattern_type": "LITERAL",
        "principal": "User:a", "host": "*", "operation": "READ", "permission": "ALLOW",
    }  # fmt: skip
    assert error(cluster.get("/acls")) == (400, 40002)
    assert error(cluster.post("/acls", json=rule)) == (400, 40002)
    assert error(cluster.post("/acls:batch", json={"data": [rule]})) == (400, 40002)
    assert error(cluster.delete("/acls", params=rule)) == (400, 40002)
    assert error(cluster.delete("/acls")) == (400, 400)
    assert error(cluster.get("/acls", params={"operation": "EAT"})) == (400, 400)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/topics/none", (404, 40403)),
        ("/topics/none/partitions", (404, 40403)),
        ("/topics/a%2Fb", (400, 40002)),
        ("/topics/%25%00", (400, 40002)),
        ("/brokers/5", (404, 404)),
        ("/brokers/x", (404, 404)),
        ("/brokers/99999999999", (404, 404)),
        ("/consumer-groups/a%2Fb%20c", (404, 404)),
        ("/nothing", (404, 404)),
    ],
)
def test_what_is_not_there_is_told_with_a_code(
    cluster: httpx.Client, path: str, expected: tuple[int, int]
) -> None:
    assert error(cluster.get(path)) == expected


def test_names_with_slashes_and_percent_signs_are_one_name(
    broker: BrokerProcess, cluster: httpx.Client, topic: str
) -> None:
    produce(cluster, topic, 1)
    group = "a/b %2F"
    with consuming(broker, group, topic, 1):
        found = cluster.get("/consumer-groups/a%2Fb%20%252F").json()
        assert found["consumer_group_id"] == group
        assert cluster.get(found["consumers"]["related"]).json()["data"] != []


def test_another_cluster_is_not_ours(proxy: RestProcess) -> None:
    got = httpx.get(f"{proxy.url}/v3/clusters/other/topics", timeout=60)
    assert got.json() == {"error_code": 404, "message": "Cluster other cannot be found."}


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{}", "application/json", 400),
        (b'{"topic_name":"x","partitions_count":0}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"topic_name":"\xff"}', "application/json", 400),
        (b"{}", "text/plain", 415),
        (b"topic_name=x", "application/x-www-form-urlencoded", 415),
        (b" " * 300_000, "application/json", 413),
    ],
)
def test_bodies_that_cannot_be_used(
    cluster: httpx.Client, body: bytes, kind: str, status: int
) -> None:
    got = cluster.post("/topics", content=body, headers={"content-type": kind})
    assert error(got)[0] == status


def test_a_client_that_takes_no_json_is_told(cluster: httpx.Client) -> None:
    got = cluster.get("/topics", headers={"accept": "text/html"})
    assert error(got) == (406, 406)


def test_the_document_and_the_page_of_what_is_served(proxy: RestProcess) -> None:
    document = httpx.get(f"{proxy.url}/openapi.json", timeout=60).json()
    assert "/v3/clusters/{cluster}/topics/{topic}/records" in document["paths"]
    page = httpx.get(f"{proxy.url}/openapi", timeout=60)
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
