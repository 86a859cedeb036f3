"""A changelog is the table, however the batches were cut: its newest rows are those of the stores.

Rows that a store has let go for their age are still there, as they were at last.
"""

import random
from typing import Any

import pytest
from tests.support.streams_host import APPLICATION, ListHost

from penstock.streams import (
    STRING,
    SessionWindows,
    StreamsBuilder,
    StreamsTopology,
    TestDriver,
    TimeWindows,
)
from penstock.streams.values.serdes import LONG


def counted(windows: Any) -> StreamsTopology:
    builder = StreamsBuilder(value=STRING)
    grouped = builder.stream("a").group_by_key()
    if isinstance(windows, SessionWindows):
        grouped.windowed_by_session(windows).count(store="n").to_stream().to("out", value=LONG)
    elif windows is None:
        grouped.count(store="n").to_stream().to("out", value=LONG)
    else:
        grouped.windowed_by(windows).count(store="n").to_stream().to("out", value=LONG)
    return builder.build()


KINDS = [None, TimeWindows.of(10, grace_ms=3), SessionWindows.of(4, grace_ms=2)]


def in_changelog(key: bytes, windows: Any) -> bytes:
    """A key of the output as the changelog has it."""
    return key + bytes(4) if isinstance(windows, TimeWindows) else key


@pytest.mark.parametrize("windows", KINDS, ids=["rows", "windows", "sessions"])
@pytest.mark.parametrize("seed", range(15))
def test_the_changelogs_newest_rows_are_the_outputs(windows: Any, seed: int) -> None:
    chance = random.Random(seed)
    host, driver = ListHost(counted(windows)), TestDriver(counted(windows))
    now_ms = 100
    for _ in range(40):
        now_ms += chance.choice([0, 1, 2, 5, 9])
        key, at_ms = (
            chance.choice("ab"),
            now_ms - chance.choice([0, 0, 3]),
        )  # No later than stores keep.
        host.put("a", key.encode(), b"x", at_ms)
        driver.pipe_input("a", key, "x", at_ms)
        if chance.random() < 0.3:
            host.run()
    host.run()
    wanted = {in_changelog(key, windows): v for key, v in host.table("out").items()}
    assert host.table(f"{APPLICATION}-n-changelog") == wanted
    records = driver.read_all("out")
    assert len(records) == len(host.written("out"))


def test_a_changelog_has_one_record_for_each_key_of_a_batch() -> None:
    host = ListHost(counted(None))
    for at_ms in range(10):
        host.put("a", b"k", b"x", at_ms)
    host.run()
    (row,) = host.written(f"{APPLICATION}-n-changelog")
    assert (row.key, LONG.deserialize(row.value), row.timestamp_ms) == (b"k", 10, 9)
