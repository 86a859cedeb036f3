"""Rows of captured tables fit the schemas of their records, which transforms hold them to."""

import pytest

from penstock.connect.connectors.mysql.column_types import ColumnFacts
from penstock.connect.connectors.mysql.settings import BinlogSettings
from penstock.connect.connectors.mysql.shapes import table_of
from penstock.connect.values.struct import check_value

SETTINGS = BinlogSettings.of(
    {
        "database.hostname": "db",
        "database.user": "u",
        "database.server.id": "7",
        "topic.prefix": "p",
    },
    "mariadb",
)


@pytest.mark.parametrize("is_nullable", [True, False])
def test_values_have_the_schema_of_their_column_whether_or_not_it_may_be_null(
    is_nullable: bool,
) -> None:
    columns = [
        ColumnFacts(name="id", kind="int", is_nullable=False),
        ColumnFacts(name="place", kind="geometry", is_nullable=is_nullable),
    ]
    table = table_of("shop", "t", columns, ["id"], SETTINGS)
    check_value(table.captured.row_schema, table.row([1, bytes(4) + b"\1"]))
    if is_nullable:
        check_value(table.captured.row_schema, table.row([1, None]))
