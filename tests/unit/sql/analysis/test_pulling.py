"""Pull queries: which keys a condition names, and what is not asked that way."""

import re
from typing import Any

import pytest
from tests.support.sql_functions import sql_functions

from penstock.sql.analysis.pulling import PullQuery, analyse_pull
from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.commands.applying import Commands
from penstock.sql.language.parse import parse, parse_one
from penstock.sql.language.queries import Select

SCRIPT = """
CREATE STREAM S (ID INT KEY, B STRING)
  WITH (kafka_topic='s', value_format='JSON', key_format='JSON');
CREATE TABLE BASE (ID INT PRIMARY KEY, B STRING) WITH (kafka_topic='t', value_format='JSON');
CREATE TABLE T AS SELECT ID, COUNT(*) AS C FROM S GROUP BY ID;
CREATE TABLE TWO AS SELECT ID, B, COUNT(*) AS C FROM S GROUP BY ID, B;
CREATE TABLE W AS SELECT ID, COUNT(*) AS C FROM S WINDOW TUMBLING (SIZE 1 SECOND) GROUP BY ID;
"""


def pulled(text: str, setup: str = "") -> PullQuery:
    catalog = Catalog()
    for statement in parse(SCRIPT + setup):
        change: Any = statement
        catalog = Commands(sql_functions()).apply(catalog, change).catalog
    select = parse_one(text)
    assert isinstance(select, Select)
    return analyse_pull(select, catalog, sql_functions())


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("ID = 3", ((3,),)),
        ("3 = ID AND C > 1", ((3,),)),
        ("ID IN (1, 2, 1)", ((1,), (2,))),
        ("ID = 1 + 1", ((2,),)),
        ("ID > 3", None),
        ("ID = 3 OR C = 1", None),
        ("ID = C", None),
        ("NOT ID = 3", None),
        ("ID NOT IN (1)", None),
    ],
)
def test_the_keys_that_a_condition_names(condition: str, keys: Any) -> None:
    assert pulled(f"SELECT * FROM T WHERE {condition};").keys == keys


def test_a_key_of_two_columns_needs_both() -> None:
    assert pulled("SELECT * FROM TWO WHERE ID = 1 AND B IN ('x', 'y');").keys == (
        (1, "x"),
        (1, "y"),
    )
    assert pulled("SELECT * FROM TWO WHERE ID = 1;").keys is None


def test_windows_are_bounded_by_their_starts_and_ends() -> None:
    query = pulled("SELECT * FROM W WHERE ID = 1 AND WINDOWSTART >= 1000 AND 5000 > WINDOWEND;")
    assert (query.starts.first_ms, query.ends.last_ms) == (1000, 4999)
    assert [one.name for one in query.logical.outputs] == ["ID", "WINDOWSTART", "WINDOWEND", "C"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT ID, COUNT(*) FROM T GROUP BY ID;", "Pull queries don't support GROUP BY clauses"),
        ("SELECT * FROM T PARTITION BY C;", "Pull queries don't support PARTITION BY clauses"),
        ("SELECT * FROM T JOIN W ON T.ID = W.ID;", "Pull queries don't support JOIN clauses"),
        ("SELECT * FROM BASE WHERE ID = 1;", "The BASE table isn't queryable"),
        ("SELECT * FROM NOBODY;", "NOBODY does not exist"),
        ("SELECT FOO FROM T;", "SELECT column 'FOO' cannot be resolved"),
    ],
)
def test_what_is_not_asked_that_way(text: str, reason: str) -> None:
    with pytest.raises(StatementRefused, match=re.escape(reason)):
        pulled(text)


def test_scans_can_be_switched_off() -> None:
    off = "SET 'ksql.query.pull.table.scan.enabled' = 'false';"
    with pytest.raises(StatementRefused, match="Table scans are switched off"):
        pulled("SELECT * FROM T;", off)
    assert pulled("SELECT * FROM T WHERE ID = 1;", off).keys == ((1,),)
