"""The store: nothing is answered before it was read back, nothing is decided twice."""

import asyncio
import json
import logging

import pytest
from tests.unit.registry.service.rig import ID, NOTE, MemoryTopic, Registry, record

from penstock.client.errors import FatalError
from penstock.errors import PolicyViolation, RecordTooLarge
from penstock.registry.records import NOOP, StoreRecord
from penstock.registry.service.store import StoreBroken

V1, V2 = record(ID), record(ID, NOTE)
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


def test_a_writer_that_is_lost_ends_the_reader_and_so_the_process() -> None:
    async def run() -> None:
        async with Registry() as registry:
            registry.topic.refusals = [FatalError("fenced")]
            body = {"schema": json.dumps(V1)}
            assert (await registry.error("POST", PATH, body))[1] == 50001
            with pytest.raises(StoreBroken, match="fenced"):
                await registry.following

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

    async def append(self, record: StoreRecord) -> int:
        self.put(NOOP)
        return await super().append(record)


def test_another_writer_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with Registry(SharedTopic()) as registry:
            await registry.register("orders", V1)

    with caplog.at_level(logging.ERROR, "penstock.registry"):
        asyncio.run(run())
    assert "Somebody else writes" in caplog.text
