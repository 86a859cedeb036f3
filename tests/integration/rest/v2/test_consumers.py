"""Consumer instances: groups, assignments, positions, commits, and their end."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
from tests.integration.rest.v2.asking import (
    V2,
    assign,
    error_of,
    get_with_body,
    media,
    post,
    produce,
    read,
    stored,
    subscribe,
)
from tests.support.broker import BrokerProcess
from tests.support.rest import RestProcess
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.operations.groups import GroupDescription
from penstock.client.operations.topics import NewTopic

Make = Callable[..., str]


def fill(client: httpx.Client, topic: str, count: int) -> None:
    stored(produce(client, topic, [{"value": number} for number in range(count)], "json"))


def here(topic: str, partition: int = 0, **more: object) -> dict[str, object]:
    return {"topic": topic, "partition": partition, **more}


def is_busy(client: httpx.Client, reader: str) -> bool:
    """Whether a request that needs no time has to wait for another's end."""
    try:
        return not client.get(f"{reader}/subscription", timeout=1).is_success
    except httpx.ReadTimeout:
        return True


def test_an_instance_is_named_and_says_where_it_is(
    client: httpx.Client, proxy: RestProcess
) -> None:
    got = post(client, "/consumers/named%2Fgroup", {"name": "own name"})
    assert got.status_code == 200
    path = "/consumers/named%2Fgroup/instances/own%20name"
    assert got.json() == {"instance_id": "own name", "base_uri": proxy.url + path}
    assert error_of(post(client, "/consumers/named%2Fgroup", {"name": "own name"})) == (409, 40902)
    assert client.delete(path).status_code == 204
    assert error_of(client.delete(path)) == (404, 40403)
    unnamed = client.post("/consumers/unnamed").json()
    assert unnamed["instance_id"].startswith("rest-consumer-")
    assert client.delete(unnamed["base_uri"]).status_code == 204


def test_a_group_reads_on_where_it_committed(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    fill(client, topic, 3)
    group = f"reads-on-{topic}"
    first = consumer("json", group=group, auto_commit_enable="false")
    subscribe(client, first, topic)
    assert client.get(f"{first}/subscription").json() == {"topics": [topic]}
    records = read(client, first, 3, "json")
    assert records[0] == here(topic, key=None, value=0, offset=0)
    assert [one["offset"] for one in records] == [0, 1, 2]
    assert client.get(f"{first}/assignments").json() == {"partitions": [here(topic)]}
    committed = post(client, f"{first}/offsets")
    assert (committed.status_code, committed.json()) == (200, [])
    told = get_with_body(client, f"{first}/offsets", {"partitions": [here(topic)]}).json()
    assert told == {"offsets": [here(topic, offset=3, metadata="")]}
    client.delete(first)
    fill(client, topic, 1)
    second = consumer("json", group=group)
    subscribe(client, second, topic)
    assert [one["offset"] for one in read(client, second, 1, "json")] == [3]


def test_without_a_commit_records_come_again_and_with_the_timer_they_do_not(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    fill(client, topic, 2)
    for setting, expected in (("false", 0), ("true", 0), ("true", 2)):
        reader = consumer("json", group=f"again-{topic}", auto_commit_enable=setting)
        subscribe(client, reader, topic)
        if expected == 2:
            fill(client, topic, 1)
        count = 1 if expected == 2 else 2
        assert read(client, reader, count, "json")[0]["offset"] == expected
        client.delete(reader)


def test_a_commit_names_records_and_stands_behind_them(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    """As Confluent has it: committing offset 20 makes 21 the next one to be read."""
    fill(client, topic, 5)
    reader = consumer()
    wanted = {"offsets": [here(topic, offset=3, metadata="noted")]}
    assert post(client, f"{reader}/offsets", wanted).status_code == 200
    asked = {"partitions": [here(topic), here("never-committed")]}
    told = get_with_body(client, f"{reader}/offsets", asked).json()
    assert told == {"offsets": [here(topic, offset=4, metadata="noted")]}
    assert error_of(client.get(f"{reader}/offsets")) == (404, 40402)
    later = {"offsets": [here(topic, offset=4)]}
    assert post(client, f"{reader}/offsets?async=true", later).status_code == 200

    def committed() -> int:
        told = get_with_body(client, f"{reader}/offsets", {"partitions": [here(topic)]}).json()
        return int(told["offsets"][0]["offset"])

    eventually(lambda: committed() == 5, what="the commit that nobody waited for")


def test_positions_are_chosen(client: httpx.Client, consumer: Make, topic: str) -> None:
    fill(client, topic, 4)
    reader = consumer("json")
    assign(client, reader, topic)
    assert client.get(f"{reader}/assignments").json() == {"partitions": [here(topic)]}
    assert len(read(client, reader, 4, "json")) == 4
    assert post(client, f"{reader}/positions", {"offsets": [here(topic, offset=2)]}).is_success
    assert [one["offset"] for one in read(client, reader, 2, "json")] == [2, 3]
    assert post(client, f"{reader}/positions/beginning", {"partitions": [here(topic)]}).is_success
    assert [one["offset"] for one in read(client, reader, 4, "json")] == [0, 1, 2, 3]
    post(client, f"{reader}/positions/beginning", {"partitions": [here(topic)]})
    assert post(client, f"{reader}/positions/end", {"partitions": [here(topic)]}).is_success
    fill(client, topic, 1)
    assert [one["offset"] for one in read(client, reader, 1, "json")] == [4]
    assert error_of(
        post(client, f"{reader}/positions", {"offsets": [here("other", offset=2)]})
    ) == (409, 40903)


def test_an_answer_has_at_most_so_many_bytes_and_nothing_is_passed_over(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    value = "QUJD" * 10
    stored(produce(client, topic, [{"value": value} for _ in range(5)], "binary"))
    reader = consumer(auto_commit_enable="false")
    assign(client, reader, topic)
    found = []
    while len(found) < 5:
        got = client.get(f"{reader}/records", params={"max_bytes": 65, "timeout": 5000}).json()
        assert len(got) == (2 if len(found) < 4 else 1)
        found += got
        assert post(client, f"{reader}/offsets").is_success
        told = get_with_body(client, f"{reader}/offsets", {"partitions": [here(topic)]}).json()
        assert told["offsets"][0]["offset"] == len(found)  # Not what was polled and is kept.
    (whole,) = [client.get(f"{reader}/records", params={"max_bytes": 1, "timeout": 50}).json()]
    assert whole == []


def test_a_record_larger_than_an_answer_comes_alone(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    stored(produce(client, topic, [{"value": "QUJD"}, {"value": "QUJD"}], "binary"))
    reader = consumer()
    assign(client, reader, topic)
    for offset in (0, 1):
        (got,) = client.get(f"{reader}/records", params={"max_bytes": 1, "timeout": 9000}).json()
        assert got["offset"] == offset


def test_fetch_min_bytes_waits_until_there_is_enough(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    fill(client, topic, 3)
    reader = consumer("json", fetch_min_bytes=8)
    assign(client, reader, topic)
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(httpx.get, f"{reader}/records", timeout=120)
        eventually(lambda: is_busy(client, reader), what="a read that waits")
        fill(client, topic, 5)
        got = reading.result()
    assert [one["offset"] for one in got.json()] == list(range(8))


def test_subscription_and_assignment_exclude_each_other(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    fill(client, topic, 1)
    reader = consumer("json")
    subscribe(client, reader, topic)
    by_hand = {"partitions": [here(topic)]}
    assert error_of(post(client, f"{reader}/assignments", by_hand)) == (409, 40903)
    assert client.delete(f"{reader}/subscription").status_code == 204
    assert client.get(f"{reader}/subscription").json() == {"topics": []}
    assign(client, reader, topic)
    assert error_of(post(client, f"{reader}/subscription", {"topics": [topic]})) == (409, 40903)
    assert len(read(client, reader, 1, "json")) == 1


def test_a_pattern_matches_whole_names(
    client: httpx.Client, broker: BrokerProcess, consumer: Make, topic: str
) -> None:
    names = [f"{topic}-pattern-a", f"{topic}-pattern-b", f"x-{topic}-pattern-a"]
    for name in names:
        fill(client, name, 1)
    reader = consumer("json")
    wanted = {"topic_pattern": f"{topic}-pattern-.*"}
    assert post(client, f"{reader}/subscription", wanted).status_code == 204
    assert {one["topic"] for one in read(client, reader, 2, "json")} == set(names[:2])
    assert client.get(f"{reader}/subscription").json() == {"topics": names[:2]}


def test_two_instances_share_a_topic(
    client: httpx.Client, broker: BrokerProcess, proxy: RestProcess, consumer: Make, topic: str
) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_topics([NewTopic(name=topic, partitions=4, replication_factor=1)])
        readers = [consumer("json", group=f"shared-{topic}") for _ in range(2)]
        for reader in readers:
            subscribe(client, reader, topic)

        def poll(reader: str) -> int:
            with httpx.Client(timeout=120) as own:
                own.get(f"{reader}/records", params={"timeout": 300})
                return len(own.get(f"{reader}/assignments").json()["partitions"])

        with ThreadPoolExecutor(2) as threads:
            eventually(lambda: list(threads.map(poll, readers)) == [2, 2], what="an even share")
        assert client.delete(readers[0]).status_code == 204
        eventually(lambda: poll(readers[1]) == 4, what="all partitions")


def test_a_deleted_instance_leaves_its_group_at_once_and_breaks_its_read_off(
    client: httpx.Client, broker: BrokerProcess, consumer: Make, topic: str
) -> None:
    fill(client, topic, 1)
    group = f"leaving-{topic}"
    reader = consumer("json", group=group)
    subscribe(client, reader, topic)
    read(client, reader, 1, "json")

    def members() -> int:
        with Admin(bootstrap_servers=broker.address) as admin:
            found = admin.describe_consumer_groups([group])[group]
        assert isinstance(found, GroupDescription)
        return len(found.members)

    assert members() == 1
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(
            httpx.get, f"{reader}/records", timeout=120, headers={"accept": media("json")}
        )
        eventually(lambda: is_busy(client, reader), what="a read that waits")
        assert client.delete(reader).status_code == 204
        got = waiting.result()  # After its whole minute it would be empty, and no error.
    assert error_of(got) == (404, 40403)
    assert members() == 0


def test_one_request_at_a_time_uses_an_instance(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    fill(client, topic, 30)
    reader = consumer("json")
    assign(client, reader, topic)

    def take(_: int) -> list[int]:
        with httpx.Client(timeout=120) as own:
            got = own.get(f"{reader}/records", params={"max_bytes": 5, "timeout": 3000})
            assert got.status_code == 200, got.text
            return [one["offset"] for one in got.json()]

    with ThreadPoolExecutor(8) as threads:
        taken = [offset for some in threads.map(take, range(12)) for offset in some]
    assert len(taken) == len(set(taken)), "no record twice"
    assert sorted(taken) == list(range(len(taken))), "and none left out"


def test_the_answer_is_in_the_format_of_the_instance(
    client: httpx.Client, consumer: Make, topic: str
) -> None:
    fill(client, topic, 1)
    reader = consumer("json")
    assign(client, reader, topic)
    wrong = client.get(f"{reader}/records", headers={"accept": media("binary")})
    assert error_of(wrong) == (406, 40601)
    for accept in (V2, "*/*"):
        got = client.get(f"{reader}/records", params={"timeout": 100}, headers={"accept": accept})
        assert got.status_code == 200
