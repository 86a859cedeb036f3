"""Rows of captured tables fit the schemas of their records, which transforms hold them to."""

import pytest

from penstock.connect.connectors.postgres.column_types import PgType
from penstock.connect.connectors.postgres.settings import CaptureSettings
from penstock.connect.connectors.postgres.shapes import (
    CatalogColumn,
    CatalogTable,
    table_of,
    told_by_catalog,
)
from penstock.connect.values.struct import check_value

SETTINGS = CaptureSettings.of(
    {
        "database.hostname": "db",
        "database.user": "u",
        "database.dbname": "shop",
        "topic.prefix": "p",
        "decimal.handling.mode": "precise",
    }
)
NUMERIC = PgType(oid=2, name="numeric")
TYPES = {
    1: PgType(oid=1, name="int4"),
    2: NUMERIC,
    3: PgType(oid=3, name="_numeric", element=NUMERIC),
    4: PgType(oid=4, name="point"),
}


@pytest.mark.parametrize("identity", ["d", "f"])
@pytest.mark.parametrize("not_null", [True, False])
def test_values_have_the_schema_of_their_column_whether_or_not_it_may_be_null(
    identity: str, not_null: bool
) -> None:
    columns = tuple(
        CatalogColumn(name=name, type_oid=oid, modifier=-1, not_null=not_null)
        for name, oid in (("id", 1), ("price", 2), ("prices", 3), ("place", 4))
    )
    catalog = CatalogTable(columns=columns, key=("id",), identity=identity)
    told = told_by_catalog("public", "t", catalog)
    table = table_of(told, catalog, TYPES.__getitem__, SETTINGS).captured
    row = table.row(["1", "1.25", "{1.5,NULL}", "(1,2)"])
    check_value(table.row_schema, row)
    if not not_null:
        check_value(table.row_schema, table.row(["1", None, None, None]))
