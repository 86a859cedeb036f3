"""Three registries on one broker: one leads, the others pass writes on, and any of them may die.

The topic itself is the judge: whatever was answered is in it, and no id has two schemas.
"""

import http.client
import itertools
import json
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.broker import BrokerProcess
from tests.support.processes import HOST
from tests.support.registry import RegistryProcess
from tests.support.waiting import eventually

from penstock.client.consumer.consumer import Consumer
from penstock.client.operations.membership import GroupMembership, GroupProtocol
from penstock.client.values import TopicPartition
from penstock.client.wire.cluster import ClusterClient

MEDIA = "application/vnd.schemaregistry.v1+json"
SESSION_MS = 3000  # A pause must outlast it; a busy machine should not.
PATIENCE_S = 120.0
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    settings = {"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(tmp_path_factory.mktemp("broker"), settings) as running:
        running.start()
        yield running


class Instances:
    """Registries of one group, by what they say of who leads."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        settings = {
            "kafkagroup.session.timeout.ms": str(SESSION_MS),
            "kafkagroup.heartbeat.interval.ms": "300",
            "kafkastore.timeout.ms": "60000",
        }
        self.all = [
            RegistryProcess(directory / f"registry-{n}", bootstrap, settings) for n in range(3)
        ]
        self.alive = list(self.all)

    def start(self) -> None:
        for one in self.all:
            one.start()
        eventually(self.agreed, timeout_s=PATIENCE_S, what="one leader")

    def agreed(self) -> RegistryProcess | None:
        """The leader, if all that live know the same one and it lives."""
        told = {said_leader(one) for one in self.alive}
        return next((one for one in self.alive if told == {one.url}), None)

    def leader(self) -> RegistryProcess:
        return eventually(self.agreed, timeout_s=PATIENCE_S, what="one leader")

    def others(self) -> list[RegistryProcess]:
        leader = self.leader()
        return [one for one in self.alive if one is not leader]


def said_leader(registry: RegistryProcess) -> str | None:
    found = re.findall(r"The leader is (\S+)", registry.log_path.read_text())
    return found[-1] if found else None


@pytest.fixture
def instances(broker: BrokerProcess, tmp_path: Path) -> Iterator[Instances]:
    made = Instances(tmp_path, broker.address)
    try:
        made.start()
        yield made
        for one in made.all:
            assert one.tracebacks() == {}
    finally:
        for one in made.all:
            one.kill()


def ask(
    registry: RegistryProcess,
    method: str,
    path: str,
    body: object = None,
    headers: dict[str, str] | None = None,
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(HOST, registry.port, timeout=PATIENCE_S)
    try:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": MEDIA, **(headers or {})})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def schema() -> dict[str, str]:
    """A schema that nobody has."""
    text = json.dumps({"type": "enum", "name": f"E{next(NUMBERS)}", "symbols": ["A"]})
    return {"schema": text}


def register(registry: RegistryProcess, body: dict[str, str]) -> int:
    subject = json.loads(body["schema"])["name"]
    status, told = ask(registry, "POST", f"/subjects/{subject}/versions", body)
    assert status == 200, told
    return int(told["id"])


def written(broker: BrokerProcess, topic: str) -> list[tuple[int, str]]:
    """Every id with its schema in the order of the topic, whatever became of it later."""
    at = TopicPartition(topic, 0)
    found: list[tuple[int, str]] = []
    with Consumer({"bootstrap.servers": broker.address, "auto.offset.reset": "earliest"}) as reader:
        reader.assign([at])
        end = reader.end_offsets([at])[at]
        while reader.position(at) < end:
            for record in reader.poll(1.0):
                key = json.loads(record.key)
                if key["keytype"] == "SCHEMA" and record.value is not None:
                    value = json.loads(record.value)
                    found.append((value["id"], value["schema"]))
    return found


def check(broker: BrokerProcess, answered: dict[str, int], topic: str = "_schemas") -> None:
    """No id has two schemas, no schema two ids, and nothing that was answered is missing."""
    pairs = set(written(broker, topic))
    assert len({schema_id for schema_id, _ in pairs}) == len(pairs)
    assert len({text for _, text in pairs}) == len(pairs)
    kept = {json.loads(text)["name"]: schema_id for schema_id, text in pairs}
    for text, schema_id in answered.items():
        assert kept[json.loads(text)["name"]] == schema_id


def test_every_instance_takes_writes_and_the_leader_makes_them(
    broker: BrokerProcess, instances: Instances
) -> None:
    leader, (second, third) = instances.leader(), instances.others()
    made = [(one, schema()) for one in (second, leader, third)]
    answered = {}
    for one, body in made:
        schema_id = answered[body["schema"]] = register(one, body)
        # Whoever was asked knows what it answered, though another one wrote it.
        status, told = ask(one, "GET", f"/schemas/ids/{schema_id}")
        assert (status, json.loads(told["schema"])) == (200, json.loads(body["schema"]))
    for one in instances.all:
        for schema_id in answered.values():
            path = f"/schemas/ids/{schema_id}"
            eventually(lambda: ask(one, "GET", path)[0] == 200, timeout_s=PATIENCE_S)  # noqa: B023
    # Errors of the leader come through as they are, and so do settings, deletions, odd subjects.
    assert ask(second, "PUT", "/config", {"compatibility": "odd"})[1]["error_code"] == 42203
    odd = "/subjects/50%25%2Fof%20it%3F"
    assert ask(third, "POST", f"{odd}/versions", schema())[0] == 200
    assert ask(leader, "GET", f"{odd}/versions") == (200, [1])
    assert ask(second, "DELETE", f"{odd}?permanent=false") == (200, [1])
    assert ask(leader, "GET", f"{odd}/versions")[1]["error_code"] == 40401
    # What was passed on once is not passed on again.
    status, told = ask(second, "POST", "/subjects/x/versions", schema(), {"X-Forward": "true"})
    assert (status, told["error_code"]) == (500, 50004)
    check(broker, answered)


def test_a_leader_that_is_killed_between_write_and_answer_loses_nothing(
    broker: BrokerProcess, instances: Instances
) -> None:
    answered: dict[str, int] = {}
    stopping = threading.Event()

    def keep_registering(which: int) -> None:
        while not stopping.is_set():
            body = schema()
            alive = list(instances.alive)
            try:
                answered[body["schema"]] = register(alive[which % len(alive)], body)
            except (OSError, AssertionError, http.client.HTTPException):
                continue  # It died with the question, or did not know; what counts is the topic.

    with ThreadPoolExecutor(3) as clients:
        busy = [clients.submit(keep_registering, which) for which in range(3)]
        try:
            for _ in range(2):
                leader = instances.leader()
                known = len(answered)
                eventually(lambda: len(answered) > known + 5, timeout_s=PATIENCE_S)  # noqa: B023
                leader.kill()  # With three clients there is always a write under way.
                instances.alive.remove(leader)
                instances.leader()
            known = len(answered)
            eventually(lambda: len(answered) > known + 5, timeout_s=PATIENCE_S)
        finally:
            stopping.set()
        for one in busy:
            one.result()
    check(broker, answered)
    # Whoever comes back knows all of it.
    again = instances.all[0] if instances.all[0] not in instances.alive else instances.all[1]
    again.start()
    for text, schema_id in answered.items():
        status, told = ask(again, "GET", f"/schemas/ids/{schema_id}")
        assert (status, json.loads(told["schema"])) == (200, json.loads(text))


def test_a_leader_that_was_paused_and_wakes_cannot_write_any_more(
    broker: BrokerProcess, instances: Instances
) -> None:
    old = instances.leader()
    answered: dict[str, int] = {}
    body = schema()
    answered[body["schema"]] = register(old, body)  # It has a term.
    assert old.process is not None
    old.process.send_signal(signal.SIGSTOP)
    try:
        late = [schema() for _ in range(4)]
        with ThreadPoolExecutor(len(late)) as clients:
            # These wait in the sockets of the one that sleeps, and are the first thing it sees.
            waiting = [clients.submit(register, old, one) for one in late]
            instances.alive.remove(old)
            new = instances.leader()
            for _ in range(10):
                body = schema()
                answered[body["schema"]] = register(new, body)
            old.process.send_signal(signal.SIGCONT)
            for one, done in zip(late, waiting, strict=True):
                answered[one["schema"]] = done.result()
    finally:
        old.process.send_signal(signal.SIGCONT)
    instances.alive.append(old)
    instances.leader()
    check(broker, answered)


def test_two_that_lead_at_the_same_time_give_no_id_twice(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    """One was put out of the group and does not notice before its next heartbeat."""
    shared = {"kafkastore.topic": "_two", "schema.registry.group.id": "two"}
    slow = {
        "kafkagroup.session.timeout.ms": "1200000",
        "kafkagroup.heartbeat.interval.ms": "900000",
    }
    quick = {"kafkagroup.heartbeat.interval.ms": "300"}
    protocol = GroupProtocol(group_id="two", protocol_type="sr", protocol="v0")
    with (
        RegistryProcess(tmp_path / "first", broker.address, {**shared, **slow}) as first,
        RegistryProcess(tmp_path / "second", broker.address, {**shared, **quick}) as second,
        ClusterClient(broker.address) as cluster,
    ):
        first.start()
        answered = {}
        body = schema()
        answered[body["schema"]] = register(first, body)
        outsider = GroupMembership(cluster, protocol)
        assert outsider.evict(lambda told: str(first.port).encode() in told) == 1
        second.start()
        leads = f"The leader is {second.url} (this instance)"
        eventually(lambda: leads in second.log, timeout_s=PATIENCE_S)
        assert said_leader(first) == first.url
        for _ in range(10):
            for one in (first, second):
                body = schema()
                answered[body["schema"]] = register(one, body)
        assert "Term begun" in first.log
        assert "Term begun" in second.log
        assert "two schemas may get one id" not in first.log + second.log
    check(broker, answered, "_two")


def test_an_instance_that_may_not_lead_waits_for_one_that_may(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    settings = {
        "leader.eligibility": "false",
        "kafkastore.topic": "_idle",
        "schema.registry.group.id": "idle",
        "kafkastore.timeout.ms": "1000",
    }
    with RegistryProcess(tmp_path / "idle", broker.address, settings) as idle:
        idle.start()
        status, told = ask(idle, "POST", "/subjects/x/versions", schema())
        assert (status, told) == (500, {"error_code": 50004, "message": "Leader not known."})
        assert ask(idle, "GET", "/subjects") == (200, [])
        # Two with one address could not find each other.
        at_the_same = {"host.name": HOST, "listeners": f"http://127.0.0.2:{idle.port}"}
        twin = RegistryProcess(tmp_path / "twin", broker.address, {**settings, **at_the_same})
        with twin:
            twin.launch()
            assert twin.wait() == 1
        assert "another instance of the group is at" in twin.log
        # The first was there before, and stays.
        assert ask(idle, "GET", "/subjects") == (200, [])
