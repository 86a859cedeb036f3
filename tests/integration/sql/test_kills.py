"""Five persistent queries under kill -9 of the service, of Spark and of the broker: all is exact.

Rows keep coming while one of the three is killed at a moment of chance, round after round. In the
end each query's result is what the rows give: nothing is lost, nothing is counted twice.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.broker import BrokerProcess
from tests.support.processes import named_below
from tests.support.sql_server import SqlServerProcess
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.timeout(7200),
    pytest.mark.skipif(os.environ.get("PENSTOCK_LONG") != "1", reason="many kills: long"),
]
ROUNDS = int(os.environ.get("PENSTOCK_SQL_KILLS", "30"))
PATIENCE_S = 1800.0
STATEMENTS = """
CREATE STREAM rows (k STRING KEY, v INT) WITH (KAFKA_TOPIC='rows', VALUE_FORMAT='JSON',
  PARTITIONS=2);
CREATE TABLE names (k STRING PRIMARY KEY, name STRING) WITH (KAFKA_TOPIC='names',
  VALUE_FORMAT='JSON', PARTITIONS=2);
CREATE STREAM even AS SELECT k, v FROM rows WHERE v % 2 = 0;
CREATE TABLE counts AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM rows GROUP BY k;
CREATE TABLE hours AS SELECT k, COUNT(*) AS n FROM rows WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY k;
CREATE STREAM named AS SELECT r.k AS k, r.v AS v, n.name AS name
  FROM rows r LEFT JOIN names n ON r.k = n.k;
CREATE STREAM paired AS SELECT r.v AS v, r.k AS k, e.k AS other
  FROM rows r JOIN even e WITHIN 1 HOUR ON r.v = e.v;
"""
EARLIEST = {"auto.offset.reset": "earliest"}
KEYS = 5
HOUR_MS = 3_600_000


class Feed:
    """Rows by INSERT, tried again until somebody has them; a row may so be there twice."""

    def __init__(self, sql: SqlServerProcess) -> None:
        self.sql = sql
        self.next = 0

    def rows(self, count: int) -> None:
        """More of them; each until it was acknowledged."""
        for _ in range(count):
            text = f"INSERT INTO rows VALUES ('k{self.next % KEYS}', {self.next});"
            _insist(lambda text=text: self.sql.ksql(text))  # type: ignore[misc]
            self.next += 1


def _insist(act: Callable[[], Any]) -> Any:
    deadline_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            return act()
        except (AssertionError, OSError):
            assert time.monotonic() < deadline_s, "nobody answers"
            time.sleep(0.2)  # Whoever was killed needs a moment to come back.


def kill_spark(sql: SqlServerProcess) -> None:
    """The virtual machine below the server; nothing, where it has not started yet."""
    assert sql.process is not None
    for one in named_below(sql.process.pid, "java"):
        one.send_signal(signal.SIGKILL)


def strike(victim: str, sql: SqlServerProcess, broker: BrokerProcess) -> None:
    if victim == "spark":
        kill_spark(sql)
    elif victim == "service":
        sql.kill()
        sql.start()
    else:
        broker.kill()
        broker.start()


def test_five_queries_stay_exact_under_kills(broker: BrokerProcess, tmp_path: Path) -> None:
    chance = random.Random(16)
    with SqlServerProcess(tmp_path / "sql", broker.address) as sql:
        sql.start()
        sql.ksql(STATEMENTS, streamsProperties=EARLIEST)
        for key in range(KEYS):
            sql.ksql(f"INSERT INTO names VALUES ('k{key}', 'name {key}');")
        feed = Feed(sql)
        feed.rows(10)
        eventually(lambda: counted(sql) == written(sql), timeout_s=PATIENCE_S)
        for number in range(ROUNDS):
            feed.rows(chance.randrange(5, 30))
            time.sleep(chance.random())  # A moment of chance is what is wanted.
            strike(("spark", "service", "broker")[number % 3], sql, broker)
            feed.rows(chance.randrange(5, 30))
            if number % 10 == 9:
                check(sql)
        check(sql)
        sql.stop()


def written(sql: SqlServerProcess) -> Counter[str]:
    """Rows of each key as the topic has them: an INSERT without an answer may be there."""
    return Counter(row[0] for row in _insist(lambda: sql.rows("SELECT k FROM rows;")))


def counted(sql: SqlServerProcess) -> Counter[str]:
    found = _insist(lambda: sql.rows("SELECT k, n FROM counts;"))
    return Counter({row[0]: row[1] for row in found})


def check(sql: SqlServerProcess) -> None:
    """Each result beside what the rows give."""
    rows = [tuple(row) for row in _insist(lambda: sql.rows("SELECT k, v, ROWTIME FROM rows;"))]
    counts = Counter(k for k, _, _ in rows)
    totals = {key: sum(v for k, v, _ in rows if k == key) for key in counts}
    hours = Counter((k, at_ms // HOUR_MS * HOUR_MS) for k, _, at_ms in rows)
    even = Counter((k, v) for k, v, _ in rows if v % 2 == 0)
    wanted: dict[str, Counter[Any]] = {
        "SELECT k, v FROM even;": even,
        "SELECT k, n, total FROM counts;": Counter((k, counts[k], totals[k]) for k in counts),
        "SELECT k, WINDOWSTART, n FROM hours;": Counter((*at, n) for at, n in hours.items()),
        "SELECT k, v, name FROM named;": Counter((k, v, f"name {k[1:]}") for k, v, _ in rows),
        # A row that was inserted twice meets both of its copies, and so does the copy.
        "SELECT v, k, other FROM paired;": Counter(
            {(v, k, k): n * n for (k, v), n in even.items()}
        ),
    }
    for query, result in wanted.items():
        settled(sql, query, result)


def settled(sql: SqlServerProcess, query: str, wanted: Counter[Any]) -> None:
    """Returns when a query has this result; tells what it has where that does not come."""
    found: Counter[Any] = Counter()

    def is_so() -> bool:
        nonlocal found
        found = Counter(tuple(row) for row in _insist(lambda: sql.rows(query)))
        return found == wanted

    try:
        eventually(is_so, timeout_s=PATIENCE_S, every_s=1.0)
    except AssertionError:
        raise AssertionError(
            f"{query} too many: {found - wanted}, lacking: {wanted - found}"
        ) from None
