"""What a Java connector asks for from threads of its own, and what its task is told of records."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.connect.errors.kinds import ConnectError
from penstock.connect.java.connector import JavaClass, java_connector
from penstock.connect.java.wire import decode
from penstock.connect.records import SourceRecord

JAVA = JavaClass(name="com.acme.Source", version="1", jars=(Path("a.jar"),), options=())


class FakeHost:
    """A JVM in which nothing fails."""

    @contextmanager
    def errors(self, what: str) -> Iterator[None]:
        yield


class FakeBridge:
    """Answers as it was told to, and remembers what it was given."""

    def __init__(self, *events: str | None) -> None:
        self.events = list(events)
        self.calls: list[Any] = []

    def event(self, wait_ms: int) -> str | None:
        if not self.events:
            raise ConnectError("the JVM ended")
        return self.events.pop(0)

    def confirm(self, places: bytes) -> None:
        self.calls.append(decode(places))

    def commit(self) -> None:
        self.calls.append("commit")


class Asked:
    """The context of a connector."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def request_task_reconfiguration(self) -> None:
        self.told.append("tasks anew")

    def raise_error(self, error: Exception) -> None:
        self.told.append(str(error))


def test_new_tasks_and_failures_are_passed_on_until_the_jvm_ends() -> None:
    connector: Any = java_connector(JAVA)()
    asked = Asked()
    connector.initialize(asked)
    connector._host, connector._bridge = FakeHost(), FakeBridge(None, "reconfigure", "java.x.Oops")
    connector._watch()
    assert asked.told == [
        "tasks anew",
        "com.acme.Source failed in Java: java.x.Oops",
        "the JVM ended",
    ]


def record() -> SourceRecord:
    return SourceRecord(topic="t", source_partition=None, source_offset=None)


def listening_task(bridge: FakeBridge, *polled: SourceRecord) -> Any:
    task: Any = java_connector(JAVA).task_class()()
    task._host, task._bridge, task._listens = FakeHost(), bridge, True
    task._polled.extend(polled)
    return task


def test_a_task_that_listens_hears_of_each_record_before_the_commit() -> None:
    one, two, bridge = record(), record(), FakeBridge()
    task = listening_task(bridge, one, two)
    task.commit_record(one, partition=3, offset=7)
    task.commit_record(two, partition=None, offset=None)
    task.commit()
    assert bridge.calls == [[[3, 7], [None, None]], "commit"]


def test_records_that_are_confirmed_out_of_order_are_told() -> None:
    one, two = record(), record()
    task = listening_task(FakeBridge(), one, two)
    with pytest.raises(ConnectError, match="out of their order"):
        task.commit_record(two, partition=0, offset=0)
