"""A script cut into batches anywhere, with nothing but pages between them, gives the same records.

The test driver is the measure: it takes the same records one by one and forgets nothing.
"""

import random
from collections import Counter

import pytest
from tests.conftest import IS_LONG
from tests.support.streams_host import ListHost
from tests.support.streams_scripts import (
    LOOKED_UP,
    MORE_TOMBSTONES,
    TOPOLOGIES,
    built,
    hex_of,
    played,
    random_script,
)

from penstock.streams import (
    JSON,
    STRING,
    Processor,
    ProcessorContext,
    StreamRecord,
    StreamsBuilder,
)
from penstock.streams.tasks.holding import held_nodes

SEEDS = range(200 if IS_LONG else 4)


def inputs(name: str) -> set[str]:
    topology = built(name)
    return {t for node in topology.sources for t in node.topics} - topology.internal_topics


def sends_held(name: str) -> bool:
    return bool(held_nodes(built(name))) and name not in LOOKED_UP


@pytest.mark.parametrize("name", sorted(set(TOPOLOGIES) - MORE_TOMBSTONES))
def test_batches_and_restarts_change_nothing(name: str) -> None:
    for seed in SEEDS:
        script = [step for step in random_script(name, seed) if step[0] == "P"]
        chance = random.Random(f"{name} {seed}")
        host = ListHost(built(name))
        for step in script:
            key, value = (None if word == "~" else word.encode() for word in step[2:4])
            host.put(step[1], key, value, int(step[4]))
            # Of several topics in one batch the earliest record comes first, whatever was piped
            # first; so there each record is a batch.
            if len(inputs(name)) > 1 or chance.random() < 0.3:
                host.run()
        host.run()
        found = [(hex_of(r.key), hex_of(r.value), r.timestamp_ms) for r in host.written("out")]
        assert found == played(name, script), f"seed {seed}"


@pytest.mark.parametrize("name", sorted(TOPOLOGIES))
def test_one_result_a_key_and_batch_leads_to_the_same_tables(name: str) -> None:
    written = Counter[str]()
    for seed in SEEDS:
        script = [step for step in random_script(name, seed) if step[0] == "P"]
        chance = random.Random(f"{name} {seed}")
        each, last = ListHost(built(name)), ListHost(built(name), merges=True)
        for step in script:
            key, value = (None if word == "~" else word.encode() for word in step[2:4])
            cuts = chance.random() < 0.3
            for host in (each, last):
                host.put(step[1], key, value, int(step[4]))
                if cuts:
                    host.run()
        each.run()
        last.run()
        assert last.table("out") == each.table("out"), f"seed {seed}"
        written["each"] += len(each.written("out"))
        written["last"] += len(last.written("out"))
    assert (written["last"] < written["each"]) == sends_held(name)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("name", [name for name in sorted(TOPOLOGIES) if "foreign" in name])
def test_a_foreign_key_join_ends_with_the_same_table_however_it_is_cut(
    name: str, partitions: int
) -> None:
    for seed in (*SEEDS, 26):  # Seed 26 loses its foreign key and changes again in one batch.
        script = [step for step in random_script(name, seed) if step[0] == "P"]
        script = [(*step[:4], str(10 * at)) for at, step in enumerate(script, 1)]
        chance = random.Random(f"{name} {seed}")
        host = ListHost(built(name), partitions)
        for step in script:
            key, value = (None if word == "~" else word.encode() for word in step[2:4])
            host.put(step[1], key, value, int(step[4]))
            if chance.random() < 0.2:
                host.run()
        host.run()
        newest = {answer[0]: answer[1] for answer in played(name, script)}
        found = {hex_of(r.key): hex_of(r.value) for r in host.written("out")}
        wanted = {key: value for key, value in newest.items() if value != "~"}
        assert {k: v for k, v in found.items() if v != "~"} == wanted, f"seed {seed}"


@pytest.mark.parametrize(
    "changes",
    [["9", "99"], ["9", None], [None, "9"], ["9", None, "9"], ["2", "9"], ["9", "1", "9", "99"]],
)
def test_a_row_that_loses_its_foreign_key_loses_its_result_whatever_comes_behind(
    changes: list[str | None],
) -> None:
    """All changes are in one batch, so the answers to all but the last come too late."""
    host = ListHost(built("foreign_key"))
    host.put("b", b"k1", b"right", 1)
    host.put("b", b"k2", b"other", 1)
    host.put("a", b"row", b"1", 2)
    host.run()
    assert host.table("out") != {}
    for at_ms, value in enumerate(changes, 3):
        host.put("a", b"row", None if value is None else value.encode(), at_ms)
    host.run()
    assert host.table("out") == {}


class Thrice(Processor):
    """Tells the stream's time at most three times, which its store counts."""

    def init(self, context: ProcessorContext) -> None:
        self.context, self.told = context, context.store("told")
        self.ticking = context.schedule(10, "stream", self.tick)

    def tick(self, now_ms: int) -> None:
        count = (self.told.get("times") or 0) + 1
        self.told.put("times", count)
        self.context.forward(StreamRecord(key="now", value=str(now_ms), timestamp_ms=now_ms))
        if count == 3:
            self.ticking.cancel()


def test_a_punctuator_that_was_cancelled_stays_so_in_later_batches() -> None:
    builder = StreamsBuilder(value=STRING).add_state_store("told", value=JSON)
    builder.stream("in").process(Thrice, "told").to("out")
    host = ListHost(builder.build())
    for at_ms in range(5, 100, 10):
        host.put("in", b"k", b"v", at_ms)
        host.run()
    assert [record.value for record in host.written("out")] == [b"5", b"15", b"25"]
