"""`penstock.sql.connect` against a real server: statements, rows with types, inserts, errors."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from tests.support.processes import HOST, free_port
from tests.support.sql_server import SqlServerProcess

import penstock.sql
from penstock.sql.client.connection import SqlConnection
from penstock.sql.client.errors import SqlServiceRefused, SqlServiceUnreachable

EARLIEST = {"auto.offset.reset": "earliest"}
TYPES = """
CREATE STREAM CLIENT_TYPES (ID INT KEY, B BIGINT, D DOUBLE, E DECIMAL(6, 2), T BOOLEAN, S STRING,
  Y BYTES, DAY DATE, CLOCK TIME, AT TIMESTAMP, L ARRAY<DECIMAL(4, 1)>, M MAP<STRING, INT>,
  R STRUCT<X INT, Z STRING>)
  WITH (kafka_topic='client_types', value_format='JSON', partitions=1);
"""
ROW = {
    "ID": 1, "B": 5_000_000_000, "D": 1.5, "E": Decimal("12.50"), "T": True, "S": "h\u00e9",
    "Y": b"abc", "DAY": date(2021, 2, 3), "CLOCK": time(4, 5, 6),
    "AT": datetime(2021, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC), "L": [Decimal("1.5")],
    "M": {"a": 1}, "R": {"X": 1, "Z": "z"},
}  # fmt: skip


@pytest.fixture(scope="module")
def connection(sql: SqlServerProcess) -> Iterator[SqlConnection]:
    with penstock.sql.connect(sql.url, properties=EARLIEST) as made:
        made.execute(
            "CREATE STREAM CLIENT_CLICKS (NAME STRING KEY, N INT) "
            "WITH (kafka_topic='client_clicks', value_format='JSON', partitions=1);"
        )
        yield made


def test_every_type_comes_back_as_it_went(connection: SqlConnection) -> None:
    connection.execute(TYPES)
    connection.insert("CLIENT_TYPES", ROW)
    with connection.stream("SELECT * FROM CLIENT_TYPES EMIT CHANGES;") as rows:
        row = next(rows)
    assert row.as_dict() == ROW
    assert {name: type(value) for name, value in row.as_dict().items()} == {
        name: type(value) for name, value in ROW.items()
    }
    assert (row.E, row["s"], row[0]) == (Decimal("12.50"), "h\u00e9", 1)
    assert row.columns[3].type == "DECIMAL(6, 2)"


def test_a_query_that_ends_is_a_table(connection: SqlConnection) -> None:
    count = connection.insert_many(
        "CLIENT_CLICKS", ({"NAME": f"n{i}", "N": i} for i in range(1_500))
    )
    assert count == 1_500
    table = connection.query(
        "SELECT NAME, N FROM CLIENT_CLICKS WHERE N >= 1497 EMIT CHANGES LIMIT 3;"
    )
    assert list(table) == [("n1497", 1497), ("n1498", 1498), ("n1499", 1499)]
    assert table.names == ["NAME", "N"]
    frame = table.to_pandas()
    assert frame["N"].sum() == 1497 + 1498 + 1499
    arrow = table.to_arrow()
    assert (str(arrow.schema.field("N").type), arrow.num_rows) == ("int32", 3)
    assert "<td>n1498</td>" in table._repr_html_()


def test_statements_answer_with_documents_that_show_as_tables(connection: SqlConnection) -> None:
    answers = connection.execute("SHOW STREAMS; DESCRIBE CLIENT_CLICKS;")
    assert [answer.kind for answer in answers] == ["streams", "sourceDescription"]
    assert "<td>CLIENT_CLICKS</td>" in answers._repr_html_()
    assert ("NAME", "VARCHAR(STRING) (key)") in answers[1].grids()[0].rows
    assert connection.info()["serverStatus"] == "RUNNING"


def test_refusals_have_the_services_words_and_code(connection: SqlConnection) -> None:
    with pytest.raises(SqlServiceRefused, match="NOBODY does not exist") as refused:
        connection.execute("CREATE STREAM X AS SELECT * FROM NOBODY;")
    assert (refused.value.status, refused.value.error_code) == (400, 40001)
    with pytest.raises(SqlServiceRefused, match="NOBODY"):
        connection.query("SELECT * FROM NOBODY EMIT CHANGES;")
    with pytest.raises(SqlServiceRefused, match="the row 2 was not inserted"):
        connection.insert_many("CLIENT_CLICKS", [{"NAME": "ok", "N": 1}, {"NAME": "x", "N": "y"}])


def test_nobody_there_is_told_in_a_sentence() -> None:
    with pytest.raises(SqlServiceUnreachable, match="no SQL service answers at http://127"):
        penstock.sql.connect(f"http://{HOST}:{free_port()}").execute("SHOW STREAMS;")
