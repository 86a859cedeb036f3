"""Cases of the SQL suite on Spark: the same queries, fed the same records, must write the same.

The test driver tells what each query writes, and the case's assertions have judged that. On Spark
all records of a case are there before its queries start, so only cases are taken whose order does
not depend on more: statements first, then records, times that only grow where topics are several.
Many cases run at once, since most of a case's time is the starting of its stages.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.support.sql_functions import sql_functions
from tests.support.streams_spark import application, create

from penstock.client.producer.producer import Producer
from penstock.sql.analysis.inserting import RowValues
from penstock.sql.analysis.persistent import QueryInto
from penstock.sql.asking.records import present_records
from penstock.sql.language.parse import parse
from penstock.sql.language.scripts import statement_texts
from penstock.sql.language.statements import AssertRow, CreateAs, InsertRow, Statement
from penstock.sql.testing.scripts import TestCase, cases_of
from penstock.sql.testing.session import TestSession
from penstock.streams import StreamsTopology, TestDriver
from penstock.streams.steps.foreign_key import SubscribeRows

SUITE = Path(__file__).resolve().parents[1] / "golden" / "sql" / "queries"
_LIST = SUITE.parent / "on_spark.txt"
_TOPIC = re.compile(r"(kafka_topic\s*=\s*')", re.IGNORECASE)
_OF_CHANCE = re.compile(r"RANDOM|UUID|UNIX_|NOW\(|\$\{", re.IGNORECASE)  # Never twice the same.
_LINES = re.DOTALL  # Names of cases are in small letters, and SQL is not.
_STREAMS, _TABLES = r"(?=.*WITHIN)", r"(?!.*(WITHIN|CREATE STREAM))"
_MIXED = r"(?!.*WITHIN)(?=.*CREATE STREAM)(?=.*CREATE TABLE)"
_ONE_JOIN = r"(?!.* JOIN .* JOIN )"

# What the sample must have, and of how many cases.
FEATURES: dict[str, tuple[int, str]] = {
    "streams, inner": (3, rf"{_STREAMS}{_ONE_JOIN}.*(?<!LEFT)(?<!RIGHT)(?<!OUTER) JOIN "),
    "streams, left": (2, rf"{_STREAMS}{_ONE_JOIN}.*LEFT (OUTER )?JOIN"),
    "streams, right": (1, rf"{_STREAMS}{_ONE_JOIN}.*RIGHT (OUTER )?JOIN"),
    "streams, full": (1, rf"{_STREAMS}{_ONE_JOIN}.*FULL OUTER JOIN"),
    "stream and table, inner": (2, rf"{_MIXED}{_ONE_JOIN}.*(?<!LEFT)(?<!OUTER) JOIN "),
    "stream and table, left": (1, rf"{_MIXED}{_ONE_JOIN}.*LEFT (OUTER )?JOIN"),
    "tables, inner": (1, rf"{_TABLES}{_ONE_JOIN}.*(?<!LEFT)(?<!RIGHT)(?<!OUTER) JOIN "),
    "tables, left": (1, rf"{_TABLES}{_ONE_JOIN}.*LEFT (OUTER )?JOIN"),
    "tables, right": (1, rf"{_TABLES}{_ONE_JOIN}.*RIGHT (OUTER )?JOIN"),
    "tables, full": (1, rf"{_TABLES}{_ONE_JOIN}.*FULL OUTER JOIN"),
    "foreign key": (2, r".*--@test: (each row with the row|a row that points|a foreign key)"),
    "three sources": (3, r".* JOIN .* JOIN "),
    "tumbling": (3, r".*WINDOW TUMBLING"),
    "hopping": (2, r".*WINDOW HOPPING"),
    "session": (3, r".*WINDOW SESSION"),
    "final": (3, r".*EMIT FINAL"),
    "grace": (2, r".*WINDOW[^;]*GRACE PERIOD"),
    "explode": (3, r".*EXPLODE\("),
    "partition by": (3, r".*PARTITION BY"),
    "having": (2, r".*HAVING"),
    "aggregate of a table": (1, r".*a table's row"),
    "tombstone": (2, r".*ASSERT NULL VALUES"),
    "insert into": (2, r".*INSERT INTO \w+ SELECT"),
    "avro": (1, r".*'AVRO'"),
    "json with a schema": (1, r".*'JSON_SR'"),
    "protobuf": (1, r".*'PROTOBUF'"),
    "delimited": (1, r".*'DELIMITED'"),
    "kafka": (1, r".*'KAFKA'"),
    "lambda": (1, r".*=>"),
    "case": (1, r".*CASE WHEN"),
    "struct": (1, r".*->"),
    "headers": (1, r".*HEADERS?\b"),
}
AT_ONCE = 6
_SHUFFLE = "spark.sql.shuffle.partitions"
Written = tuple[bytes | None, bytes | None, int]
Planned = tuple[QueryInto, StreamsTopology]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkWritten:
    """What a topic has on Spark, and in the test driver."""

    topic: str
    found: list[Written]
    wanted: list[Written]
    in_order: bool  # Whether one query alone wrote it.
    is_table: bool  # Whether only the last record of a key is decided.

    @property
    def is_same(self) -> bool:
        """Whether they are the same records, in the same order where that is decided."""
        if self.is_table:
            return _newest(self.found) == _newest(self.wanted)
        if self.in_order:
            return self.found == self.wanted
        return Counter(self.found) == Counter(self.wanted)


def _newest(records: list[Written]) -> dict[bytes | None, bytes]:
    newest = {key: value for key, value, _ in records}
    return {key: value for key, value in newest.items() if value is not None}


@dataclass
class NotingSession(TestSession):
    """Keeps the queries that it was told to run."""

    queries: list[Planned] = field(default_factory=list)
    inserted: int = 0

    def _insert(self, row: RowValues) -> None:
        """A row without a time gets one, since Spark leaves out what is of 1970's first moment."""
        self.inserted += 1
        super()._insert(row if row.time_ms else replace(row, time_ms=1_000 + self.inserted))

    def _driver(self, query: QueryInto) -> TestDriver:
        driver = super()._driver(query)
        self.queries.append((query, driver.topology))
        return driver

    def written(self, topic: str) -> list[Written]:
        """The records of a topic."""
        found = self._topics.get(topic)
        return [] if found is None else [(r.key, r.value, r.timestamp_ms) for r in found.records]


def has(feature: str, case: TestCase) -> bool:
    """Whether a case shows a feature."""
    return re.match(FEATURES[feature][1], case.text, _LINES) is not None


def sample(*, is_long: bool) -> list[TestCase]:
    """The cases that the list names: its first part alone, or all."""
    suite = {
        f"{path.name}: {case.name}": case
        for path in sorted(SUITE.glob("*.sql"))
        for case in cases_of(path.read_text())
    }
    parts = _LIST.read_text().split("\n# With PENSTOCK_LONG=1")
    lines = "\n#".join(parts if is_long else parts[:1]).splitlines()
    return [suite[line] for line in lines if line and not line.startswith("#")]


def fits(case: TestCase) -> bool:
    """Whether a case gives the same with all its records there before its queries start."""
    statements = [one for text in statement_texts(case.text) for one in parse(text)]
    is_certain = case.message is None and not _OF_CHANCE.search(case.text)
    return is_certain and _fits(statements)


def _fits(statements: list[Statement]) -> bool:
    kinds = ["I" if isinstance(one, InsertRow) else "C"
             for one in statements if not isinstance(one, AssertRow)]  # fmt: skip
    if kinds != sorted(kinds) or "I" not in kinds:
        return False
    if not all(any(isinstance(one, kind) for one in statements) for kind in (CreateAs, AssertRow)):
        return False
    rows = [one for one in statements if isinstance(one, InsertRow)]
    made = {one.name for one in statements if isinstance(one, CreateAs)}
    if made & {row.target for row in rows}:
        return False  # Such a row would have to come between a query's own.
    times = [_time(row) or 1_001 + at for at, row in enumerate(rows)]
    if not all(map(_time, rows)) and (any(map(_time, rows)) or _asserted(statements)):
        return False
    grows = all(one < two for one, two in pairwise(times))
    return grows or len({row.target for row in rows}) == 1


def _asserted(statements: list[Statement]) -> list[AssertRow]:
    return [one for one in statements if isinstance(one, AssertRow) and "ROWTIME" in one.columns]


def _time(row: InsertRow | AssertRow) -> int:
    if "ROWTIME" not in row.columns:
        return 0
    value: Any = row.values[row.columns.index("ROWTIME")]
    return int(getattr(value, "value", 0) or 0)


def run_all(
    cases: Iterable[TestCase], spark: SparkSession, address: str, state: Path
) -> list[list[SinkWritten] | Exception]:
    """Each case: what its topics have, or why it could not run."""

    def run(numbered: tuple[int, TestCase]) -> list[SinkWritten] | Exception:
        number, case = numbered
        try:
            return run_on_spark(case, spark, address, state / str(number), f"c{number}-")
        except Exception as error:  # noqa: BLE001  (the case's own test tells it)
            return error

    before = spark.conf.get(_SHUFFLE)
    spark.conf.set(_SHUFFLE, "1")  # As each stage wants it: topics here have one partition.
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(run, enumerate(cases)))
    finally:
        spark.conf.set(_SHUFFLE, str(before))


def run_on_spark(
    case: TestCase, spark: SparkSession, address: str, state: Path, prefix: str
) -> list[SinkWritten]:
    """What each topic that a query writes has, on Spark and in the test driver."""
    session, client = NotingSession(sql_functions()), {"bootstrap.servers": address}
    session.catalog = session.catalog.__class__(
        properties={"ksql.output.topic.name.prefix": prefix}
    )
    for text in statement_texts(_TOPIC.sub(rf"\g<1>{prefix}", case.text)):
        for statement in parse(text):
            session.run(statement)
    sinks = Counter(query.sink.topic for query, _ in session.queries)
    sources = {
        topic for _, plan in session.queries for node in plan.sources for topic in node.topics
    }
    inner = {topic for _, plan in session.queries for topic in plan.internal_topics}
    _fill(session, sorted(sources - set(sinks) - inner), sorted(sinks), address)
    for number, (query, topology) in enumerate(_from_source_to_sink(session.queries)):
        app = application(
            spark,
            topology,
            address,
            state,
            f"{prefix}{number}",
            ("tests.support.sql_functions",),
            statestore_cache_max_bytes=0,  # Every result, as the driver gives them.
        )
        app.run_once()
        assert app.failure is None, (query.note.statement, app.failure)
    # Answers to a foreign key come with the next batch: all but the last of one are too late.
    pointing = {
        query.sink.topic
        for query, plan in session.queries
        if any(isinstance(node.step, SubscribeRows) for node in plan.nodes)
    }
    return [
        SinkWritten(
            topic=topic,
            found=[(r.key, r.value, r.timestamp_ms) for r in present_records(client, topic)],
            wanted=session.written(topic),
            in_order=writers == 1,
            is_table=topic in pointing,
        )
        for topic, writers in sinks.items()
    ]


def _from_source_to_sink(queries: list[Planned]) -> Iterator[Planned]:
    """Each query after those that write what it reads: it reads to the end that is there."""
    left = list(queries)
    while left:
        unwritten = {query.sink.topic for query, _ in left}
        ready = [
            one
            for one in left
            if unwritten.isdisjoint(topic for node in one[1].sources for topic in node.topics)
        ]
        assert ready, "queries that read each other's topics"
        yield from ready
        left = [one for one in left if one not in ready]


def _fill(session: NotingSession, sources: list[str], sinks: list[str], address: str) -> None:
    create(address, *sources, *sinks)
    producer: Producer[bytes, bytes] = Producer({"bootstrap.servers": address, "acks": "all"})
    try:
        sent = [
            producer.send(
                topic,
                record.value,
                key=record.key,
                timestamp_ms=record.timestamp_ms,
                headers=list(record.headers),
            )
            for topic in sources
            for record in (session._topics[topic].records if topic in session._topics else ())
        ]
        for one in sent:
            one.result(60)
    finally:
        producer.close(5.0)
