"""The store: nothing is answered before it was read back, nothing is decided twice."""

import asyncio
import json
import logging
from collections.abc import Sequence

import pytest
from tests.unit.registry.service.rig import ID, NOTE, MemoryTopic, Registry, record

from penstock.client.wire.fenced_writer import WriteOutcomeUnknown, WriterFenced
from penstock.errors import PolicyViolation, RecordTooLarge, UnknownTopicOrPartition
from penstock.registry.records import NOOP, StoreRecord, mode_record, schema_record
from penstock.registry.registering import SchemaRegistration, SchemaRequest, register
from penstock.registry.schema import SchemaContent, SchemaVersion
from penstock.registry.service.leadership import Leadership
from penstock.registry.service.store import NotLeading, StoreBroken
from penstock.registry.state import RegistryState
from penstock.schemas.definitions.parse import parse_definition as parse

V1, V2 = record(ID), record(ID, NOTE)
V1_ASKED = SchemaRequest.of({"schema": json.dumps(V1)})
PATH = "/subjects/orders/versions"


def test_a_change_is_answered_when_it_was_read_back() -> None:
    async def run() -> None:
        async with Registry() as registry:
            registry.topic.gate.clear()
            registry.following.cancel()  # A reader that waits for the gate takes its place.
            await asyncio.wait([registry.following])
            registry.following = asyncio.create_task(registry.store.follow())
            written = len(registry.topic.records)
            change = asyncio.create_task(registry.register("orders", V1))
            while len(registry.topic.records) == written:
                await asyncio.sleep(0)
            for _ in range(100):
                await asyncio.sleep(0)
            assert not change.done()
            assert await registry.get("/subjects") == []
            registry.topic.gate.set()
            assert await change == 1
            assert await registry.get("/subjects") == ["orders"]

    asyncio.run(run())


def test_changes_at_the_same_time_get_different_ids() -> None:
    async def run() -> None:
        async with Registry() as registry:
            schemas = [{**V1, "name": f"Order{n}"} for n in range(20)]
            ids = await asyncio.gather(
                *(registry.register(f"s{n}", schema) for n, schema in enumerate(schemas))
            )
            assert sorted(ids) == list(range(1, 21))

    asyncio.run(run())


def test_a_change_that_takes_too_long_is_told_and_still_counts_for_the_next() -> None:
    async def run() -> None:
        async with Registry() as registry:
            registry.following.cancel()
            await asyncio.wait([registry.following])
            registry.store._timeout_s = 0.01
            body = {"schema": json.dumps(V1)}
            assert (await registry.error("POST", PATH, body))[:2] == (500, 50002)
            # The first holds its place: what comes next must know its outcome.
            assert (await registry.error("POST", PATH, body))[:2] == (500, 50002)
            registry.store._timeout_s = 60
            registry.following = asyncio.create_task(registry.store.follow())
            assert await registry.register("orders", V2) == 2
            assert await registry.get(PATH) == [1, 2]

    asyncio.run(run())


def test_a_new_store_knows_what_an_earlier_one_wrote() -> None:
    async def run() -> None:
        async with Registry() as first:
            await first.register("orders", V1)
            await first.put("/config/orders", {"compatibility": "NONE"})
            await first.delete("/subjects/orders")
            await first.delete("/subjects/orders?permanent=true")
            kept = first.topic.records
        async with Registry(MemoryTopic(kept)) as second:
            assert await second.register("orders", V2) == 2

    asyncio.run(run())


def test_a_damaged_record_is_left_out() -> None:
    async def run() -> None:
        topic = MemoryTopic()
        topic.put(StoreRecord(key=b"no json", value=b"{}"))
        async with Registry(topic) as registry:
            assert registry.store.damaged == 1
            assert await registry.register("orders", V1) == 1

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "code"), [(RecordTooLarge("3 MB"), 42209), (PolicyViolation("no"), 50001)]
)
def test_what_the_brokers_refuse_is_told_and_changes_nothing(error: Exception, code: int) -> None:
    async def run() -> None:
        async with Registry() as registry:
            registry.topic.refusals = [error]
            body = {"schema": json.dumps(V1)}
            assert (await registry.error("POST", PATH, body))[1] == code
            assert await registry.register("orders", V2) == 1

    asyncio.run(run())


def test_a_topic_that_is_gone_ends_the_reader_and_so_the_process() -> None:
    async def run() -> None:
        async with Registry() as registry:
            registry.topic.refusals = [UnknownTopicOrPartition("it was deleted")]
            body = {"schema": json.dumps(V1)}
            assert (await registry.error("POST", PATH, body))[1] == 50001
            with pytest.raises(StoreBroken, match="it was deleted"):
                await registry.following

    asyncio.run(run())


def test_a_writer_that_was_fenced_begins_a_new_term_and_reads_up_to_it() -> None:
    async def run() -> None:
        async with Registry() as registry:
            await registry.register("orders", V1)
            registry.topic.refusals = [WriterFenced("another one leads")]
            foreign = schema_record(
                SchemaVersion(
                    subject="orders", version=2, schema_id=2, content=SchemaContent(text='"int"')
                )
            )
            registry.topic.put(foreign)  # Of the one that led in between.
            assert await registry.register("others", V2) == 3
            assert registry.topic.terms == 2

    asyncio.run(run())


def test_a_write_without_an_outcome_is_told_and_settled_by_a_new_term() -> None:
    async def run() -> None:
        async with Registry() as registry:
            registry.topic.refusals = [WriteOutcomeUnknown("no answer")]
            body = {"schema": json.dumps(V1)}
            assert (await registry.error("POST", PATH, body))[:2] == (500, 50002)
            assert await registry.register("orders", V1) == 1
            assert registry.topic.terms == 2

    asyncio.run(run())


def test_writers_of_another_producer_id_are_retired() -> None:
    async def run() -> None:
        topic = MemoryTopic()
        topic.put(NOOP, 3)
        async with Registry(topic) as registry:
            await registry.register("orders", V1)
            assert topic.retired == [3]
            await registry.register("orders", V2)
            assert topic.retired == [3]

    asyncio.run(run())


def test_who_does_not_lead_writes_nothing() -> None:
    async def run() -> None:
        async with Registry(timeout_s=0.05, leadership=Leadership()) as registry:
            written = len(registry.topic.records)
            body = {"schema": json.dumps(V1)}
            told = await registry.error("POST", PATH, body)
            assert told == (500, 50004, "Leader not known.")
            with pytest.raises(NotLeading):
                await registry.store.change(lambda state: register(state, "s", V1_ASKED, parse))
            assert len(registry.topic.records) == written

    asyncio.run(run())


def test_who_loses_the_lead_while_he_decides_writes_nothing() -> None:
    async def run() -> None:
        async with Registry() as registry:
            await registry.register("orders", V1)
            written = len(registry.topic.records)

            def decide(state: RegistryState) -> SchemaRegistration:
                registry.leadership.assign(None, is_us=False, until_s=0)
                return register(state, "others", V1_ASKED, parse)

            with pytest.raises(NotLeading):
                await registry.store.change(decide)
            assert len(registry.topic.records) == written

    asyncio.run(run())


def test_who_does_not_lead_still_tells_the_id_of_what_is_registered() -> None:
    async def run() -> None:
        async with Registry() as first:
            await first.register("orders", V1)
            kept = first.topic.records
        async with Registry(MemoryTopic(kept), leadership=Leadership()) as second:
            assert await second.register("orders", V1) == 1

    asyncio.run(run())


def test_a_topic_that_begins_anew_ends_the_reader() -> None:
    async def run() -> None:
        async with Registry() as registry:
            await registry.register("orders", V1)
            registry.topic.records.append(registry.topic.records[0])
            registry.topic._grown.set()
            with pytest.raises(StoreBroken, match="begins anew"):
                await registry.following

    asyncio.run(run())


class SharedTopic(MemoryTopic):
    """Somebody else's record comes before each of ours."""

    async def append(self, records: Sequence[StoreRecord]) -> int:
        self.put(mode_record("s", "READWRITE"))
        return await super().append(records)


def test_another_writer_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with Registry(SharedTopic()) as registry:
            await registry.register("orders", V1)

    with caplog.at_level(logging.ERROR, "penstock.registry"):
        asyncio.run(run())
    assert "two schemas may get one id" in caplog.text
