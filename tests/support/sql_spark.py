"""Cases of the SQL suite on Spark: the same queries, fed the same records, must write the same.

The test driver tells what each query writes, and the case's assertions have judged that. On Spark
all records of a case are there before its queries start, so only cases are taken whose order does
not depend on more: statements first, then records, times that only grow where topics are several.
"""

import re
from collections.abc import Iterator
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

SUITE = Path(__file__).resolve().parents[1] / "golden" / "sql" / "queries"
_TOPIC = re.compile(r"(kafka_topic\s*=\s*')", re.IGNORECASE)
_STAGED = re.compile(
    r"JOIN .* JOIN |FULL OUTER|RANDOM|UUID|UNIX_|NOW\(|\$\{", re.IGNORECASE | re.DOTALL
)
Written = tuple[bytes | None, bytes | None, int]


@dataclass
class NotingSession(TestSession):
    """Keeps the queries that it was told to run."""

    queries: list[tuple[QueryInto, StreamsTopology]] = field(default_factory=list)
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


def chosen_cases(count: int) -> list[TestCase]:
    """As many cases that Spark may run, from all files alike."""
    fit = [case for path in sorted(SUITE.glob("*.sql")) for case in _fitting(path)]
    step = max(1, len(fit) // count)
    return fit[::step][:count]


def _fitting(path: Path) -> Iterator[TestCase]:
    for case in cases_of(path.read_text()):
        if case.message is None and not _STAGED.search(case.text):
            statements = [one for text in statement_texts(case.text) for one in parse(text)]
            if _fits(statements):
                yield case


def _fits(statements: list[Statement]) -> bool:
    kinds = ["A" if isinstance(one, AssertRow) else "I" if isinstance(one, InsertRow) else "C"
             for one in statements]  # fmt: skip
    if kinds != sorted(kinds, key="CIA".index) or not {"I", "A"} <= set(kinds):
        return False
    if not any(isinstance(one, CreateAs) for one in statements):
        return False
    rows = [one for one in statements if isinstance(one, InsertRow)]
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


def run_on_spark(
    case: TestCase, spark: SparkSession, address: str, state: Path, prefix: str
) -> list[tuple[str, list[Written], list[Written]]]:
    """Of each query: the topic, what Spark wrote, and what the test driver did."""
    session, client = NotingSession(sql_functions()), {"bootstrap.servers": address}
    session.catalog = session.catalog.__class__(
        properties={"ksql.output.topic.name.prefix": prefix}
    )
    for text in statement_texts(_TOPIC.sub(rf"\g<1>{prefix}", case.text)):
        for statement in parse(text):
            session.run(statement)
    sinks = [query.sink.topic for query, _ in session.queries]
    sources = {
        topic for _, plan in session.queries for node in plan.sources for topic in node.topics
    }
    inner = {topic for _, plan in session.queries for topic in plan.internal_topics}
    _fill(session, sorted(sources - set(sinks) - inner), sorted(set(sinks)), address)
    for number, (query, topology) in enumerate(session.queries):
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
    return [
        (
            topic,
            [(r.key, r.value, r.timestamp_ms) for r in present_records(client, topic)],
            session.written(topic),
        )
        for topic in dict.fromkeys(sinks)
    ]


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
