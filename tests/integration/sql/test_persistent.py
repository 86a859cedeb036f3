"""Persistent queries on Spark: the labs, looked up, killed, gone on; and what fails in them."""

import base64
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support import waiting
from tests.support.broker import BrokerProcess
from tests.support.processes import ROOT, python
from tests.support.sql_server import SqlServerProcess

from penstock.client.producer.producer import Producer
from penstock.schemas.dead_letters import cause_of
from penstock.sql.asking.records import TopicRecord, present_records
from penstock.sql.language.scripts import statement_texts, without_comments
from penstock.sql.running.processing_log import ENTRIES_MAX, log_stream

pytestmark = pytest.mark.timeout(2400)

PATIENCE_S = 600  # Spark's first batch takes minutes where all else is busy too.
BEGIN_MS = int(time.time()) // 60 * 60_000 - 3_600_000  # Within the grace of a day.
SYMBOLS = {"ACME", "BOLT", "CORE", "IRON", "ZINC"}
LABS = ROOT / "examples" / "sql"
LOG, LETTERS = "default_ksql_processing_log", "default_ksql_dead_letters"
FLOOD = 3_000
EARLIEST = {"auto.offset.reset": "earliest"}


def eventually(look: Callable[[], bool]) -> None:
    waiting.eventually(look, timeout_s=PATIENCE_S, every_s=0.5)


def run_in_shell(sql: SqlServerProcess, page: Path) -> list[dict[str, Any]]:
    """A page as a person runs it; the rows of its last query."""
    words = ["sql", sql.url, "--output", "json", "-f", str(page)]
    done = subprocess.run(
        [python(), "-m", "penstock.cli.main", *words],
        capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"')]


def run_over_http(sql: SqlServerProcess, page: Path) -> list[list[Any]]:
    """A page as a program sends it: statements together, then its last query."""
    *statements, query = [
        text for text in statement_texts(page.read_text()) if without_comments(text).strip()
    ]
    sql.ksql("".join(statements))
    return sql.rows(query, auto_offset_reset="earliest")


def trade(sql: SqlServerProcess, symbol: str, price: float, quantity: int, at_ms: int) -> None:
    sql.ksql(
        "INSERT INTO trades (ROWTIME, symbol, price, quantity) "
        f"VALUES ({BEGIN_MS + at_ms}, '{symbol}', {price}, {quantity});"
    )


def totals(sql: SqlServerProcess) -> dict[str, tuple[int, int]]:
    return {row[0]: (row[1], row[2]) for row in sql.rows("SELECT * FROM totals;")}


def states(sql: SqlServerProcess) -> dict[str, str]:
    return {one["id"]: one["state"] for one in sql.ksql("SHOW QUERIES;")[0]["queries"]}


def servers(sql: SqlServerProcess) -> list[str]:
    return sorted(sql.ask("GET", "/clusterStatus")[1]["clusterStatus"])


def test_the_stock_prices_lab_goes_on_where_another_server_takes_over(
    sql: SqlServerProcess, tmp_path: Path
) -> None:
    rows = run_in_shell(sql, LABS / "stock_prices.sql")
    assert {row["SYMBOL"]: row["AMOUNT"] for row in rows} == {"ZINC": 3825.0, "IRON": 700.0}
    names = ["CSAS_BIG_TRADES_1", "CTAS_TOTALS_2", "CTAS_PER_MINUTE_3"]
    assert sorted(states(sql)) == sorted(names)
    first = {"ZINC": (3, 419), "IRON": (1, 100)}
    for number in range(20):
        trade(sql, "ACME" if number % 2 else "BOLT", 10.0 + number, 10 * number, 7_000 * number)
    eventually(lambda: totals(sql) == {**first, "BOLT": (10, 900), "ACME": (10, 1000)})
    assert set(states(sql).values()) == {"RUNNING"}
    big = "SELECT symbol, amount FROM big_trades;"
    eventually(lambda: len(sql.rows(big)) == 12)
    assert ["ACME", 29.0 * 190] in sql.rows(big)

    # Another server of the service takes over, with the state that the topics tell.
    second = SqlServerProcess(tmp_path, sql.settings["bootstrap.servers"].partition("://")[2])
    with second:
        second.start()
        eventually(lambda: totals(second) == totals(sql))
        eventually(lambda: len(servers(second)) == 2)
        eventually(lambda: set(states(second).values()) == {"RUNNING"})
        sql.kill()
        trade(second, "ACME", 1.0, 1_000, 140_000)
        eventually(lambda: totals(second) == {**first, "BOLT": (10, 900), "ACME": (11, 2000)})
        assert sorted(states(second)) == sorted(names)
        eventually(lambda: set(states(second).values()) == {"RUNNING"})
        # The first comes back, waits, and runs them again when the second has gone.
        sql.start()
        eventually(lambda: len(servers(sql)) == 2)
        assert second.stop() == 0, second.log_end
    trade(sql, "BOLT", 1.0, 7, 141_000)
    eventually(lambda: totals(sql) == {**first, "BOLT": (11, 907), "ACME": (11, 2000)})
    eventually(lambda: len(sql.rows(big)) == 13)
    minutes = (
        "SELECT symbol, WINDOWSTART, trades, highest FROM per_minute "
        f"WHERE symbol = 'ACME' AND WINDOWSTART >= {BEGIN_MS + 60_000};"
    )
    wanted = [["ACME", BEGIN_MS + 60_000, 5, 27.0], ["ACME", BEGIN_MS + 120_000, 2, 29.0]]
    eventually(lambda: sorted(sql.rows(minutes)) == wanted)


def test_the_lab_of_website_sessions(sql: SqlServerProcess) -> None:
    visits = run_over_http(sql, LABS / "website_sessions.sql")
    assert sorted(visits) == [
        ["ada", "09:00", 360, True],
        ["ben", "09:01", 270, False],
        ["ben", "10:15", 0, False],
        ["cleo", "12:00", 0, False],
    ]
    pages = sql.rows("SELECT began, pages FROM visits WHERE person = 'ada';")
    assert pages == [["09:00", ["/", "/lamps", "/cart", "/thanks"]]]
    eventually(lambda: sql.rows("SELECT * FROM pages WHERE page = '/';") == [["/", 5, 4]])


def test_the_lab_of_orders(sql: SqlServerProcess) -> None:
    enriched = run_in_shell(sql, LABS / "orders.sql")
    assert sorted(enriched, key=lambda row: row["ID"]) == [
        {"ID": 1, "NAME": "Ada Lovelace", "CITY": "London", "DOLLARS": 42.0},
        {"ID": 2, "NAME": "Ben Okri", "CITY": "Minna", "DOLLARS": 19.5},
        {"ID": 3, "NAME": None, "CITY": None, "DOLLARS": 7.0},
        {"ID": 4, "NAME": "Ada Lovelace", "CITY": "London", "DOLLARS": 8.5},
    ]
    sold = [["bulb", 3], ["chair", 1], ["lamp", 1]]
    eventually(lambda: sorted(sql.rows("SELECT * FROM items_sold;")) == sold)
    eventually(lambda: sql.rows("SELECT * FROM cities;") == [["London", 2, 50.5]])
    gone = "DROP TABLE cities; DROP TABLE items_sold; DROP STREAM ordered_items;"
    sql.ksql(gone + "DROP STREAM orders_enriched; DROP TABLE pages; DROP TABLE visits;")


def test_queries_are_paused_resumed_terminated_and_dropped(sql: SqlServerProcess) -> None:
    sql.ksql("PAUSE CSAS_BIG_TRADES_1;")
    assert states(sql)["CSAS_BIG_TRADES_1"] == "PAUSED"
    trade(sql, "CORE", 2.0, 500, 150_000)
    eventually(lambda: totals(sql).get("CORE") == (1, 500))
    core = "SELECT amount FROM big_trades WHERE symbol = 'CORE';"
    assert sql.rows(core) == []
    sql.ksql("RESUME CSAS_BIG_TRADES_1;")
    eventually(lambda: sql.rows(core) == [[1000.0]])
    described = sql.ksql("EXPLAIN CSAS_BIG_TRADES_1;")[0]["queryDescription"]
    assert "Topologies:" in described["topology"] and described["sources"] == ["TRADES"]
    refused = sql.refused("DROP STREAM trades;")["message"]
    assert "BIG_TRADES" in refused and "PER_MINUTE" in refused
    sql.ksql("TERMINATE CTAS_PER_MINUTE_3; DROP STREAM big_trades DELETE TOPIC;")
    assert sorted(states(sql)) == ["CTAS_TOTALS_2"]
    topics = {one["name"] for one in sql.ksql("SHOW ALL TOPICS;")[0]["topics"]}
    assert "big-trades" not in topics
    assert not any("CSAS_BIG_TRADES" in name for name in topics)


def test_a_push_query_with_groups_runs_on_spark_for_one_client(sql: SqlServerProcess) -> None:
    query = "SELECT symbol, SUM(quantity) AS q FROM trades GROUP BY symbol EMIT CHANGES LIMIT 3;"
    with sql.pushing(query, auto_offset_reset="earliest") as push:
        rows = [push.row() for _ in range(3)]
        assert all(row is not None and row[0] in SYMBOLS for row in rows)
        assert push.row() is None
    query_id = push.head["queryId"]

    def is_gone() -> bool:
        topics = sql.ksql("SHOW ALL TOPICS;")[0]["topics"]
        return not any(query_id in one["name"] for one in topics)

    eventually(is_gone)


def send(broker: BrokerProcess, topic: str, values: list[bytes]) -> None:
    producer: Producer[bytes, bytes] = Producer({"bootstrap.servers": broker.address})
    try:
        for sent in [producer.send(topic, value, key=b"k") for value in values]:
            sent.result(60)
    finally:
        producer.close(5.0)


def records(broker: BrokerProcess, topic: str) -> list[TopicRecord]:
    return list(present_records({"bootstrap.servers": broker.address}, topic))


def entries(broker: BrokerProcess, query: str) -> list[dict[str, Any]]:
    found = [json.loads(one.value or b"") for one in records(broker, LOG)]
    return [one for one in found if one["logger"].startswith(f"processing.{query}")]


def test_failing_expressions_and_unreadable_records_are_told(
    sql: SqlServerProcess, shared_broker: BrokerProcess
) -> None:
    sql.ksql(
        "CREATE STREAM raw (k STRING KEY, t VARCHAR, v INT) "
        "WITH (KAFKA_TOPIC='log-raw', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    values = [b'{"t": "1", "v": 1}', b'{"t": "x", "v": 2}', b"no JSON", b'{"t": "4", "v": 3}']
    send(shared_broker, "log-raw", values)
    sql.ksql(
        "CREATE STREAM made AS SELECT k, CAST(t AS INT) AS t, NO_THREES(v) AS v FROM raw;",
        streamsProperties=EARLIEST,
    )
    eventually(lambda: sql.rows("SELECT t, v FROM made;") == [[1, 1], [None, 2], [4, None]])
    (query,) = [one for one in states(sql) if "CSAS_MADE" in one]
    told = entries(shared_broker, query)
    assert [(one["level"], one["message"]["type"]) for one in told] == [
        ("ERROR", 1), ("ERROR", 0), ("ERROR", 1)]  # fmt: skip
    cast, unread, function = (one["message"] for one in told)
    assert "CAST(T AS INT)" in cast["recordProcessingError"]["errorMessage"]
    assert json.loads(cast["recordProcessingError"]["record"]) == {"t": "x", "v": 2}
    places = [
        (part["topic"], part["partition"], part["offset"])
        for part in (cast["recordProcessingError"], unread["deserializationError"],
                     function["recordProcessingError"])
    ]  # fmt: skip
    assert places == [("log-raw", 0, 1), ("log-raw", 0, 2), ("log-raw", 0, 3)]
    assert unread["deserializationError"]["target"] == "value"
    assert base64.b64decode(unread["deserializationError"]["recordB64"]) == b"no JSON"
    assert "ValueError: not three" in function["recordProcessingError"]["errorMessage"]
    letters = records(shared_broker, LETTERS)
    (letter,) = [one for one in letters if cause_of(list(one.headers)).topic == "log-raw"]
    assert (letter.key, letter.value) == (b"k", b"no JSON")
    cause = cause_of(list(letter.headers))
    assert cause.origin == "log-raw-0@2" and query in (cause.pipeline or "")


def test_the_log_is_read_as_a_stream(sql: SqlServerProcess) -> None:
    sql.ksql(log_stream("KSQL_PROCESSING_LOG", LOG))
    found = sql.rows(
        "SELECT logger, message->type, message->`recordProcessingError`->`offset` "
        "FROM ksql_processing_log WHERE logger LIKE 'processing.CSAS_MADE%';"
    )
    assert [row[1:] for row in found] == [[1, 1], [0, None], [1, 3]]


def test_a_query_in_which_every_record_fails_does_not_flood(
    sql: SqlServerProcess, shared_broker: BrokerProcess
) -> None:
    sql.ksql(
        "CREATE STREAM flood (k STRING KEY, t VARCHAR) "
        "WITH (KAFKA_TOPIC='log-flood', VALUE_FORMAT='JSON', PARTITIONS=1);"
    )
    send(shared_broker, "log-flood", [b'{"t": "x"}'] * FLOOD)
    sql.ksql(
        "CREATE STREAM nulls AS SELECT k, CAST(t AS INT) AS t FROM flood;"
        "CREATE TABLE counts AS SELECT k, COUNT(CAST(t AS INT)) AS n, COUNT(*) AS m "
        "FROM flood GROUP BY k;",
        streamsProperties=EARLIEST,
    )
    eventually(lambda: sql.rows("SELECT n, m FROM counts;") == [[0, FLOOD]])
    eventually(lambda: len(sql.rows("SELECT t FROM nulls;")) == FLOOD)
    for name in ("CSAS_NULLS", "CTAS_COUNTS"):
        told = [
            one["message"]["recordProcessingError"]["errorMessage"]
            for one in entries(shared_broker, name)
        ]
        assert len(told) == ENTRIES_MAX + 1
        assert told[-1] == (
            f"{FLOOD - ENTRIES_MAX} more failures of this batch are not told one by one"
        )


def test_a_query_that_reads_the_log_does_not_feed_it(
    sql: SqlServerProcess, shared_broker: BrokerProcess
) -> None:
    sql.ksql(
        "CREATE STREAM again AS SELECT CAST(logger AS INT) AS n FROM ksql_processing_log;",
        streamsProperties=EARLIEST,
    )
    before = len(records(shared_broker, LOG))
    eventually(lambda: len(sql.rows("SELECT n FROM again;")) == before)
    assert len(records(shared_broker, LOG)) == before
