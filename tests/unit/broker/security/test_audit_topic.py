"""Decisions on their way to a topic: nobody waits for them, and they take bounded memory."""

import asyncio
import json
from collections.abc import Sequence

from penstock.broker.security.audit_topic import AuditTopic
from penstock.errors import RequestTimedOut
from penstock.records.batch import Record
from penstock.security.acls.audit import AuditedAction
from penstock.security.acls.rules import AclOperation, AclResourceType, ResourcePattern
from penstock.security.principals import Principal


class Pen:
    """Writes down what it gets, unless it is dry."""

    def __init__(self) -> None:
        self.is_dry = False
        self.tries = 0
        self.written: list[Record] = []

    async def write(self, records: Sequence[Record]) -> None:
        self.tries += 1
        await asyncio.sleep(0)
        if self.is_dry:
            raise RequestTimedOut("nobody leads it")
        self.written += records


def topic_of(pen: Pen, *, with_allowed: bool = False, last_s: float = 60.0) -> AuditTopic:
    return AuditTopic(
        "audit",
        broker_id=3,
        with_allowed=with_allowed,
        write=pen.write,
        now_ms=lambda: 5,
        again_s=0.001,
        last_s=last_s,
    )


def action(name: str = "t") -> AuditedAction:
    return AuditedAction(
        principal=Principal.parse("User:é"),
        host="h",
        operation=AclOperation.READ,
        resource=ResourcePattern(AclResourceType.TOPIC, name),
        request="Fetch",
    )


def test_a_decision_becomes_a_record_under_its_principal() -> None:
    pen = Pen()

    async def run() -> None:
        topic = topic_of(pen)
        async with topic.at_work():
            topic.add(action(), is_allowed=False, repeats=2)

    asyncio.run(run())
    (record,) = pen.written
    assert (record.key, record.timestamp) == ("User:é".encode(), 5)
    assert json.loads(record.value or b"") == {
        "timestamp": 5,
        "broker": 3,
        "principal": "User:é",
        "host": "h",
        "operation": "READ",
        "resourceType": "TOPIC",
        "resourceName": "t",
        "request": "Fetch",
        "allowed": False,
        "repeats": 2,
    }


def test_what_cannot_be_written_is_kept_up_to_a_bound_and_written_later() -> None:
    pen = Pen()
    pen.is_dry = True

    async def run() -> None:
        topic = topic_of(pen)
        async with topic.at_work():
            for number in range(10_050):
                topic.add(action(f"t{number}"), is_allowed=False, repeats=0)
            while pen.tries < 3:
                await asyncio.sleep(0)
            assert (topic.dropped, pen.written) == (50, [])
            pen.is_dry = False
        assert topic.dropped == 0  # It was told.

    asyncio.run(run())
    names = [json.loads(record.value or b"")["resourceName"] for record in pen.written]
    assert names == [f"t{number}" for number in range(10_000)]


def test_a_broker_that_stops_does_not_wait_for_ever() -> None:
    pen = Pen()
    pen.is_dry = True

    async def run() -> None:
        topic = topic_of(pen, last_s=0.05)
        async with topic.at_work():
            topic.add(action(), is_allowed=False, repeats=0)

    asyncio.run(run())
    assert pen.written == []


def test_writing_the_topic_itself_is_no_news() -> None:
    pen = Pen()

    async def run() -> None:
        topic = topic_of(pen, with_allowed=True)
        async with topic.at_work():
            topic.add(action("audit"), is_allowed=True, repeats=0)
            topic.add(action("audit"), is_allowed=False, repeats=0)

    asyncio.run(run())
    assert [json.loads(record.value or b"")["allowed"] for record in pen.written] == [False]
