"""Rows by number, name and attribute; tables for notebooks, pandas and Arrow."""

from decimal import Decimal

import pytest

from penstock.sql.client.rows import NamedRow, ResultColumn, ResultTable

COLUMNS = (
    ResultColumn("ID", "INTEGER"), ResultColumn("name", "STRING"),
    ResultColumn("M", "MAP<STRING, DECIMAL(4, 2)>"),
)  # fmt: skip
ROW = NamedRow(COLUMNS, (1, "<Ada>", {"a": Decimal("1.50")}))
TABLE = ResultTable(COLUMNS, (ROW, NamedRow(COLUMNS, (None, None, None))))


def test_a_row_is_asked_by_number_name_and_attribute() -> None:
    assert (ROW[0], ROW["ID"], ROW["id"], ROW.ID, ROW["name"], ROW[:2]) == (
        1, 1, 1, 1, "<Ada>", (1, "<Ada>"),
    )  # fmt: skip
    assert (1, "<Ada>", {"a": Decimal("1.50")}) == ROW
    assert list(ROW) == list(ROW.values)
    with pytest.raises(KeyError):
        ROW["NAME"]
    with pytest.raises(AttributeError):
        _ = ROW.nothing


def test_a_table_is_a_list_of_rows_and_a_frame() -> None:
    assert (len(TABLE), TABLE[0], len(TABLE[1:])) == (2, ROW, 1)
    assert list(TABLE.to_pandas().columns) == ["ID", "name", "M"]
    arrow = TABLE.to_arrow()
    assert [str(field.type) for field in arrow.schema] == [
        "int32", "string", "map<string, decimal128(4, 2)>",
    ]  # fmt: skip
    assert arrow.column("ID").to_pylist() == [1, None]
    assert arrow.column("M").to_pylist()[0] == [("a", Decimal("1.50"))]


def test_a_notebook_shows_text_as_text() -> None:
    shown = TABLE._repr_html_()
    assert "&lt;Ada&gt;" in shown
    assert "<Ada>" not in shown
    assert '<th title="INTEGER">ID</th>' in shown
    many = ResultTable(COLUMNS, (ROW,) * 1_000)._repr_html_()
    assert "and 800 more rows" in many
