"""Topics, partitions, brokers and offsets, and records to all or one partition."""

import httpx
from tests.integration.rest.v2.asking import V2, error_of, media, post, produce, stored
from tests.support.broker import BrokerProcess

from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic


def test_a_topic_is_told_with_its_partitions_and_settings(
    client: httpx.Client, broker: BrokerProcess, topic: str
) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        new = NewTopic(
            name=topic, partitions=2, replication_factor=1, configs={"retention.ms": "77"}
        )
        admin.create_topics([new])
    assert topic in client.get("/topics").json()
    told = client.get(f"/topics/{topic}", headers={"accept": V2}).json()
    replicas = [{"broker": 0, "leader": True, "in_sync": True}]
    partitions = [{"partition": n, "leader": 0, "replicas": replicas} for n in range(2)]
    assert (told["name"], told["partitions"]) == (topic, partitions)
    assert told["configs"]["retention.ms"] == "77"
    assert client.get(f"/topics/{topic}/partitions").json() == partitions
    assert client.get(f"/topics/{topic}/partitions/1").json() == partitions[1]
    assert client.get("/brokers").json() == {"brokers": [0]}
    assert client.get("/").json() == {}


def test_internal_topics_are_not_listed(client: httpx.Client, topic: str) -> None:
    stored(produce(client, topic, [{"value": "QUJD"}], "binary"))
    assert "__consumer_offsets" not in client.get("/topics").json()


def test_what_is_not_there_has_its_code(client: httpx.Client, topic: str) -> None:
    stored(produce(client, topic, [{"value": "QUJD"}], "binary"))
    for path in ("/topics/not-there", "/topics/not-there/partitions", "/topics/a%2Fb"):
        assert error_of(client.get(path)) == (404, 40401)
    assert client.get("/topics/not-there").json()["message"] == "Topic not found."
    for path in ("7", "-1", "x", "7/offsets", "99999999999999999999"):
        assert error_of(client.get(f"/topics/{topic}/partitions/{path}")) == (404, 40402)
    sent = client.post(
        f"/topics/{topic}/partitions/7",
        json={"records": [{"value": "QUJD"}]},
        headers={"content-type": media("binary")},
    )
    assert error_of(sent) == (404, 40402)
    assert error_of(client.get("/elsewhere")) == (404, 404)
    assert error_of(client.put("/topics")) == (405, 405)


def test_offsets_follow_what_is_produced(client: httpx.Client, topic: str) -> None:
    got = produce(client, topic, [{"value": "QUJD"}, {"key": "QQ==", "value": None}], "binary")
    assert got.headers["content-type"] == V2
    assert got.json() == {
        "offsets": [
            {"partition": 0, "offset": 0, "error_code": None, "error": None},
            {"partition": 0, "offset": 1, "error_code": None, "error": None},
        ],
        "key_schema_id": None,
        "value_schema_id": None,
    }
    ends = client.get(f"/topics/{topic}/partitions/0/offsets").json()
    assert ends == {"beginning_offset": 0, "end_offset": 2}


def test_records_go_where_they_are_sent(
    client: httpx.Client, broker: BrokerProcess, topic: str
) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_topics([NewTopic(name=topic, partitions=3, replication_factor=1)])
    records = [{"value": "QUJD", "partition": number} for number in (2, 0, 2)]
    assert stored(produce(client, topic, records, "binary")) == [(2, 0), (0, 0), (2, 1)]
    one = client.post(
        f"/topics/{topic}/partitions/1",
        json={"records": [{"value": {"a": 1}}]},
        headers={"content-type": media("json")},
    )
    assert stored(one) == [(1, 0)]
    # The same key has the same partition as with any other client.
    keyed = stored(produce(client, topic, [{"key": "a", "value": n} for n in range(9)], "json"))
    assert len({partition for partition, _ in keyed}) == 1


def test_a_record_that_cannot_be_stored_does_not_keep_the_others(
    client: httpx.Client, broker: BrokerProcess, topic: str
) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        new = NewTopic(
            name=topic, partitions=2, replication_factor=1, configs={"max.message.bytes": "1000"}
        )
        admin.create_topics([new])
    large = "A" * 4000
    got = produce(
        client,
        topic,
        [{"value": large, "partition": 0}, {"value": "QUJD", "partition": 1}],
        "binary",
    )
    assert got.status_code == 200
    refused, kept = got.json()["offsets"]
    assert (refused["error_code"], refused["offset"]) == (50002, None)
    assert refused["error"]
    assert (kept["partition"], kept["offset"], kept["error_code"]) == (1, 0, None)


def test_numbers_keep_all_their_digits(client: httpx.Client, topic: str) -> None:
    text = '{"records":[{"value":{"n":123456789012345678901234567890}}]}'
    got = client.post(f"/topics/{topic}", content=text, headers={"content-type": media("json")})
    assert stored(got) == [(0, 0)]
    base = post(client, f"/consumers/{topic}", {"format": "json"}).json()["base_uri"]
    post(client, f"{base}/assignments", {"partitions": [{"topic": topic, "partition": 0}]})
    post(client, f"{base}/positions/beginning", {"partitions": [{"topic": topic, "partition": 0}]})
    (record,) = client.get(f"{base}/records").json()
    assert record["value"] == {"n": 123456789012345678901234567890}
    assert client.delete(base).status_code == 204
