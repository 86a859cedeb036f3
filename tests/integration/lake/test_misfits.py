"""Records that do not fit their table, and batches that cannot be read: the table goes on."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cramjam
import pytest
from pyspark.sql import SparkSession
from tests.integration.spark.crashing import consumed
from tests.support import batches
from tests.support.broker import BrokerProcess
from tests.support.spark_topics import Topic
from tests.support.wire import RawConnection
from tests.unit.lake.reading import rows_of

from penstock import lake
from penstock.cli.tools.dlq import dlq
from penstock.lake.errors import LakeError
from penstock.lake.spec import TableSpec
from penstock.schemas.dead_letters import Cause, cause_of

ALL_FORMATS = pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])
GZIP, ZSTD = 1, 4
BOMB_BYTES = 101 << 20  # More than any uncompressed batch can be.

pytestmark = pytest.mark.timeout(900)

# What does not fit a table whose price is a whole number, and why.
MISFITS = {
    b'{"n": 10, "price": "abc"}': "column price is (int64|double) .* the record brings string",
    b'{"n": 11, "price": {"a": 1}}': "column price is (int64|double) .* brings struct",
    b'{"n": 12, "price": 123456789012345678901}': "a whole number beyond 64 bits",
    b'{"n": 13, "Price": 1, "price": 2}': "differs from Price only in case",
    b'{"n": 14, "price": 1, "price": 2}': "the record has it twice",
    b'{"n": 15, "": 2}': "a column needs a name",
    b'{"n": 16, "tags": [1, "x"]}': "column tags.element is int64 .* brings string",
    b'{"n": 17, "box": {"x": "1"}}': "column box.x is int64 .* brings string",
    b"no JSON": "not JSON",
}
GOOD = [
    {"n": 0, "price": 12, "box": {"x": 1}, "tags": [1]},
    {"n": 1, "PRICE": 13},
    {"n": 2, "two words": 1, "date": "today"},
]


class Landing:
    """One topic, and its tables."""

    def __init__(self, broker: BrokerProcess, spark: SparkSession, name: str, place: Path) -> None:
        self.name = name
        self.dead = f"{name}.dead"
        self._broker = broker
        self._spark = spark
        self._place = place
        self._topic = Topic(broker.port, name, 2)
        Topic(broker.port, self.dead)

    def put(self, *values: dict[str, Any] | bytes, partition: int = 0) -> None:
        data = [v if isinstance(v, bytes) else json.dumps(v).encode() for v in values]
        self._topic.put(data, partition=partition)

    def put_unreadable(self) -> None:
        """Damaged gzip, a bomb, and records that are none; all with the right checksum.

        The broker looks into batches that are not compressed, and into no others.
        """
        bomb, junk = (bytes(cramjam.zstd.compress(data)) for data in (bytes(BOMB_BYTES), b"\x7fx"))
        with RawConnection(self._broker.port) as connection:
            for attributes, records in ((GZIP, b"\x1f\x8bbroken"), (ZSTD, bomb), (ZSTD, junk)):
                data = batches.batch([b"", b""], attributes=attributes, records=records)
                connection.produce_one(self.name, data)

    def land(self, kind: str, table: str = "table", **choice: Any) -> list[dict[str, Any]]:
        given = {"value_format": "json", "once": True, "max_records_per_batch": 1000, **choice}
        lake.sync(
            self.name,
            to=self._place / table,
            bootstrap=self._broker.address,
            format=kind,
            spark=self._spark,
            **given,
        ).awaitTermination()
        directory = str(self._place / table)
        spec = TableSpec(directory=directory, format=kind, table_name=f"lake.{self.name}")
        return sorted(
            rows_of(spec), key=lambda row: (row.get("n") is None, row.get("n") or 0, row["offset"])
        )

    def letters(self) -> list[tuple[bytes | None, Cause]]:
        found = consumed(self._broker.address, self.dead)
        return [(one.value(), cause_of(one.headers() or [])) for one in found]

    def unread(self) -> list[int]:
        """The offsets of batches that dead letters tell of; a batch may lie across two tasks."""
        causes = [cause for value, cause in self.letters() if value is None]
        ends = [(one.offset, one.last_offset) for one in causes]
        return sorted(
            n for a, b in ends if a is not None and b is not None for n in range(a, b + 1)
        )

    def dlq(self, action: str, *options: str) -> int:
        words = [action, self.dead, "--bootstrap-server", self._broker.address]
        return dlq.main([*words, *options])


NewLanding = Callable[[str], Landing]


@pytest.fixture
def landing(shared_broker: BrokerProcess, spark: SparkSession, tmp_path: Path) -> NewLanding:
    return lambda name: Landing(shared_broker, spark, name, tmp_path)


@ALL_FORMATS
def test_dead_letters_for_what_does_not_fit_and_rows_before_and_after_it(
    landing: NewLanding, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    topic = landing(f"unfit-{kind}")
    choice = {"dead_letter_topic": topic.dead}
    topic.put(GOOD[0])  # It gives the columns their names and types.
    topic.land(kind, **choice)
    topic.put(*GOOD[1:], *MISFITS)
    topic.put_unreadable()
    topic.put({"n": 3, "fresh": 1})
    topic.put({"n": 3, "fresh": "x"}, {"n": 4}, {"n": 5, "price": 12.5}, partition=1)
    rows = topic.land(kind, **choice)
    # Iceberg has no way from whole numbers to doubles.
    wide = [] if kind == "iceberg" else [(5, 12.5)]
    found = [(row["n"], row["price"]) for row in rows]
    assert found == [(0, 12), (1, 13), (2, None), (3, None), (4, None), *wide]
    assert (rows[2]["two words"], rows[2]["value_date"]) == (1, "today")
    assert not {"Price", "PRICE", ""} & set(rows[0])

    letters = {value: cause for value, cause in topic.letters() if value is not None}
    # The fields of two tasks met: who came first decided on the type.
    fresh = {b'{"n": 3, "fresh": 1}', b'{"n": 3, "fresh": "x"}'} & set(letters)
    assert len(fresh) == 1
    unwidened = set() if wide else {b'{"n": 5, "price": 12.5}'}
    assert set(letters) == {*MISFITS, *fresh, *unwidened}
    for value, reason in MISFITS.items():
        assert re.search(reason, str(letters[value].message))
    first = len(GOOD) + len(MISFITS)
    assert topic.unread() == list(range(first, first + 6))

    assert topic.dlq("list", "--group-by", "error") == 0
    assert f"{len(topic.letters())} dead letters" in capsys.readouterr().out
    assert topic.dlq("show", "--error", "UnreadableBatch") == 0
    assert f"{topic.name}-0@{first}.." in capsys.readouterr().out
    assert topic.dlq("replay", "--error", "surely", "--execute") == 0
    capsys.readouterr()
    assert topic.dlq("replay", "--execute") == 0
    said = capsys.readouterr()
    assert "tell of whole batches that could not be read" in said.err
    assert f"{len(letters)} dead letters replayed" in said.out


@ALL_FORMATS
def test_nulls_for_what_does_not_fit_with_the_bytes_beside_them(
    landing: NewLanding, kind: str
) -> None:
    topic = landing(f"nulls-{kind}")
    topic.put(GOOD[0])
    topic.land(kind, on_error="null")
    topic.put(*GOOD[1:], *MISFITS)
    topic.put_unreadable()
    topic.put({"n": 3, "more": 1})
    rows = topic.land(kind, on_error="null")
    known = {row["n"]: row for row in rows if row["n"] is not None}
    assert list(known) == [0, 1, 2, 3, *range(10, 18)]
    assert known[3]["more"] == 1
    assert all(known[n]["price"] is None for n in range(10, 15))
    kept = {row["value_undecoded"] for row in rows}
    assert {*MISFITS, None} <= kept
    unread = [row for row in rows if row["n"] is None and row["value_undecoded"] != b"no JSON"]
    first = len(GOOD) + len(MISFITS)
    assert [row["offset"] for row in unread] == [first, first + 2, first + 4]
    assert all(len(row["value_undecoded"]) > batches.HEADER_BYTES for row in unread)


def test_failing_names_the_record_or_the_batch(landing: NewLanding) -> None:
    topic = landing("failing")
    topic.put({"n": 0, "price": 12}, {"n": 1, "price": "abc"})
    sentence = (
        r"column price is int64 in the table and the record at offset 1 of failing-0 brings string"
    )
    with pytest.raises(LakeError, match=sentence):
        topic.land("delta", max_records_per_batch=1)
    topic = landing("failing-batch")
    topic.put({"n": 0})
    topic.put_unreadable()
    sentence = r"the batch of failing-batch-0 with the offsets \d to \d cannot be read: "
    with pytest.raises(LakeError, match=sentence):
        topic.land("delta", "batches", value_format="raw")


def test_values_kept_as_bytes_have_dead_letters_for_batches(landing: NewLanding) -> None:
    topic = landing("raw-batches")
    topic.put(b"\xff")
    topic.put_unreadable()
    topic.put(b"y")
    rows = topic.land("delta", value_format="raw", dead_letter_topic=topic.dead)
    assert [(row["offset"], row["value"]) for row in rows] == [(0, b"\xff"), (7, b"y")]
    assert topic.unread() == list(range(1, 7))
