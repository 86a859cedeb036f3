"""A push query with groups or joins, as a query that writes for one client."""

from tests.support.sql_functions import sql_functions

from penstock.sql.analysis.select import analyse_select
from penstock.sql.asking.records import TopicRecord
from penstock.sql.asking.transient import rows_of, transient_query
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.commands.applying import COMMANDS, Commands
from penstock.sql.language.parse import parse, parse_one
from penstock.sql.language.queries import Select
from penstock.sql.planning.planner import Planner
from penstock.streams import TestDriver

SOURCE = (
    "CREATE STREAM s (k INT KEY, v BIGINT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');"
    "CREATE TABLE p (id INT PRIMARY KEY, n VARCHAR) WITH (KAFKA_TOPIC='p', VALUE_FORMAT='JSON');"
)


def results(text: str, records: list[tuple[str, int, str | None, int]]) -> list[tuple[object, ...]]:
    catalog, functions = Catalog(), sql_functions()
    for statement in parse(SOURCE):
        assert isinstance(statement, COMMANDS)
        catalog = Commands(functions).apply(catalog, statement).catalog
    select = parse_one(text)
    assert isinstance(select, Select)
    query = transient_query(analyse_select(select, catalog, functions), "q", "out")
    driver = TestDriver(Planner.of(catalog, functions).plan(query), as_bytes=True)
    for topic, key, value, at_ms in records:
        data = None if value is None else value.encode()
        driver.pipe_input(topic, key.to_bytes(4, "big"), data, at_ms)
    make = rows_of(query.sink)
    found = []
    for record in driver.read_all("out"):
        made = TopicRecord(0, 0, record.timestamp_ms, record.key, record.value)
        found += [row.values for row in make(made)]
    return found


def test_a_group_need_not_select_its_key() -> None:
    text = "SELECT SUM(v) AS total FROM s GROUP BY k EMIT CHANGES;"
    records = [("t", 1, '{"V":2}', 1), ("t", 1, '{"V":3}', 2), ("t", 2, '{"V":7}', 3)]
    assert results(text, records) == [(2,), (5,), (7,)]


def test_windows_and_several_columns_of_a_key() -> None:
    text = (
        "SELECT k, v, WINDOWSTART, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 1 SECOND) "
        "GROUP BY k, v EMIT CHANGES;"
    )
    records = [("t", 1, '{"V":2}', 1_500), ("t", 1, '{"V":2}', 1_700), ("t", 1, '{"V":2}', 2_100)]
    assert results(text, records) == [(1, 2, 1_000, 1), (1, 2, 1_000, 2), (1, 2, 2_000, 1)]


def test_a_join_with_a_table() -> None:
    text = "SELECT s.v AS v, p.n AS n FROM s JOIN p ON s.k = p.id EMIT CHANGES;"
    records = [("p", 1, '{"N":"ann"}', 1), ("t", 1, '{"V":2}', 2), ("t", 9, '{"V":2}', 3)]
    assert results(text, records) == [(2, "ann")]
