"""A task's share of a batch: what cannot be read, and what is told beside the results."""

from dataclasses import replace

import pytest
from tests.support.streams_host import APPLICATION, DictShelf, ListHost

from penstock.schemas.dead_letters import cause_of
from penstock.streams import JSON, STRING, StreamsBuilder, StreamsTopology
from penstock.streams.tasks.batch import RowIn, RowOut, TaskBatch, UnreadableRecord
from penstock.streams.tasks.failures import FailureLog, RecordFailure, tell
from penstock.streams.tasks.progress import TASK_KEY, progress_from


def counting() -> StreamsTopology:
    builder = StreamsBuilder(key=STRING, value=JSON)
    builder.stream("a").group_by_key().count(store="n")
    return builder.build()


def run(rows: list[RowIn], *, dead_letters: str | None = None) -> list[RowOut]:
    (work,) = ListHost(counting()).works.values()
    shelves: dict[str, DictShelf] = {}
    batch = TaskBatch(
        replace(work, dead_letters=dead_letters),
        0,
        lambda state: shelves.setdefault(state, DictShelf()),
    )
    return batch.run(rows)


BAD = [
    (RowIn("a", 0, 7, -1, b"k", b"1"), "its timestamp, -1, is negative"),
    (RowIn("a", 0, 7, 5, b"k", b"{"), "a-0@7 cannot be read"),
    (RowIn("a", 0, 7, 5, b"\xff", b"1"), "a-0@7 cannot be read"),
]


@pytest.mark.parametrize(("row", "said"), BAD, ids=["time", "value", "key"])
def test_a_record_that_cannot_be_read_stops_the_task_or_is_set_aside(row: RowIn, said: str) -> None:
    with pytest.raises(UnreadableRecord, match=said):
        run([row])
    out = run([row, RowIn("a", 0, 8, 6, b"k", b"1")], dead_letters="dead")
    (letter,) = [one for one in out if one.topic == "dead"]
    assert (letter.key, letter.value, letter.timestamp_ms) == (
        row.key,
        row.value,
        max(0, row.timestamp_ms),
    )
    assert cause_of(list(letter.headers)).origin == "a-0@7"
    assert [one.key for one in out if one.topic == f"{APPLICATION}-n-changelog"] == [b"k"]


def test_a_batch_tells_where_the_next_one_begins() -> None:
    out = run([RowIn("a", 0, offset, 5, b"k", b"1") for offset in (11, 10)])
    told = [one for one in out if one.topic.endswith("-progress-changelog")]
    assert [one.partition for one in told] == [0, 0] and told[0].key == TASK_KEY
    progress = progress_from((one.partition, one.key, one.value) for one in told)
    assert progress.positions == {("a", 0): 12} and list(progress.marks) == [0]


def dividing() -> StreamsTopology:
    """Tells of each record that is zero."""

    def tenth(value: int) -> int | None:
        if value == 0:
            tell("it is zero")
            return None
        return 10 // value

    builder = StreamsBuilder(key=STRING, value=JSON)
    builder.stream("a").map_values(tenth).to("out")
    return builder.build()


def batch_of(entries_max: int) -> TaskBatch:
    def entry(failure: RecordFailure) -> bytes:
        return f"{failure.topic}-{failure.partition}@{failure.offset} {failure.part}: " \
               f"{failure.reason}".encode()  # fmt: skip

    (work,) = ListHost(dividing()).works.values()
    log = FailureLog(topic="log", entry=entry, entries_max=entries_max)
    work = replace(work, dead_letters="dead", failures=log, progress=None)
    return TaskBatch(work, 0, lambda _: DictShelf(), wall_clock_ms=99)


def test_what_fails_for_a_record_is_written_with_its_place() -> None:
    values = [b"1", b"0", b"{", b"2"]
    batch = batch_of(10)
    out = batch.run(RowIn("a", 3, 20 + n, 5, b"k", value) for n, value in enumerate(values))
    told = [(one.value, one.timestamp_ms) for one in out if one.topic == "log"]
    assert told[0] == (b"a-3@21 None: it is zero", 99)
    assert told[1][0] is not None and told[1][0].startswith(b"a-3@22 value: ")
    assert len(told) == 2 and [one.value for one in out if one.topic == "dead"] == [b"{"]
    assert [one.value for one in out if one.topic == "out"] == [b"10", None, b"5"]
    assert batch.rest_of_failures() == []


def test_a_batch_in_which_everything_fails_has_few_entries() -> None:
    batch = batch_of(5)
    out = batch.run(RowIn("a", 0, n, 5, b"k", b"0") for n in range(1_000))
    assert sum(one.topic == "out" for one in out) == 1_000
    assert sum(one.topic == "log" for one in out) == 5
    (rest,) = batch.rest_of_failures()
    assert rest.value is not None and b"995 more failures" in rest.value


def test_nobody_is_told_where_there_is_no_log() -> None:
    batch = batch_of(5)
    silent = TaskBatch(replace(batch.work, failures=None), 0, lambda _: DictShelf())
    out = silent.run([RowIn("a", 0, 1, 5, b"k", b"0")])
    assert [one.topic for one in out] == ["out"] and silent.rest_of_failures() == []
