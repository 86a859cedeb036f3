"""The catalog is a value: statements give another, and what is used stays."""

from typing import Any

import pytest
from tests.support.sql_functions import sql_functions

from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.commands.applying import Commands, StatementOutcome
from penstock.sql.language.parse import parse

SOURCE = "CREATE STREAM S (ID INT KEY, A BIGINT) WITH (kafka_topic='s', value_format='JSON');"


def after(text: str, catalog: Catalog | None = None) -> StatementOutcome:
    """What the last of several statements made."""
    outcome = StatementOutcome(catalog=catalog or Catalog(), message="")
    for statement in parse(text):
        change: Any = statement
        outcome = Commands(sql_functions()).apply(outcome.catalog, change)
    return outcome


def test_a_statement_leaves_the_catalog_before_it_as_it_was() -> None:
    before = after(SOURCE).catalog
    later = after("CREATE STREAM O AS SELECT * FROM S;", before).catalog
    assert (set(before.relations), set(before.queries)) == ({"S"}, set())
    assert (set(later.relations), set(later.queries)) == ({"S", "O"}, {"CSAS_O_1"})


def test_the_catalog_knows_who_reads_and_who_writes() -> None:
    text = f"{SOURCE} CREATE STREAM O AS SELECT * FROM S; INSERT INTO O SELECT * FROM S;"
    catalog = after(text).catalog
    assert catalog.readers("S") == ["CSAS_O_1", "INSERTQUERY_2"]
    assert catalog.writers("O") == ["CSAS_O_1", "INSERTQUERY_2"]
    assert catalog.derived("S") == ["O"]


def test_a_query_ends_with_what_it_made() -> None:
    made = after(f"{SOURCE} CREATE STREAM O AS SELECT * FROM S;").catalog
    dropped = after("DROP STREAM O DELETE TOPIC;", made)
    assert dropped.ended == {"CSAS_O_1"}
    assert dropped.deleted_topic == "O"
    assert set(dropped.catalog.relations) == {"S"}


def test_all_queries_are_paused_resumed_and_terminated() -> None:
    made = after(f"{SOURCE} CREATE STREAM O AS SELECT * FROM S;").catalog
    paused = after("PAUSE ALL;", made).catalog
    assert paused.queries["CSAS_O_1"].is_paused
    assert not after("RESUME CSAS_O_1;", paused).catalog.queries["CSAS_O_1"].is_paused
    assert after("TERMINATE ALL;", paused).ended == {"CSAS_O_1"}


def test_properties_and_variables_come_and_go() -> None:
    catalog = after("SET 'a' = '1'; DEFINE x = 'y';").catalog
    assert (catalog.properties, catalog.variables) == ({"a": "1"}, {"X": "y"})
    catalog = after("UNSET 'a'; UNDEFINE x;", catalog).catalog
    assert (catalog.properties, catalog.variables) == ({}, {})


def test_a_query_that_replaces_another_has_its_id() -> None:
    made = after(f"{SOURCE} CREATE STREAM O AS SELECT * FROM S WHERE A > 1;").catalog
    replaced = after("CREATE OR REPLACE STREAM O AS SELECT * FROM S WHERE A > 2;", made)
    assert replaced.ended == {"CSAS_O_1"}
    assert set(replaced.catalog.queries) == {"CSAS_O_1"}
    assert "A > 2" in replaced.catalog.queries["CSAS_O_1"].statement


def test_what_is_refused_says_where() -> None:
    with pytest.raises(StatementRefused) as caught:
        after(f"{SOURCE}\nCREATE STREAM O AS\n  SELECT ID, FOO FROM S;")
    assert str(caught.value).startswith("line 3:14: SELECT column 'FOO' cannot be resolved")
