"""Statements in the words of each product."""

import pytest

from penstock.connect.connectors.jdbc.addresses import Product
from penstock.connect.connectors.jdbc.dialects import Dialect, NewColumn
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.values.logical import decimal_schema
from penstock.connect.values.schema import (
    INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    array_schema,
)

COLUMNS = [
    NewColumn(name="id", schema=STRING_SCHEMA, is_key=True),
    NewColumn(name="note", schema=OPTIONAL_STRING_SCHEMA, is_key=False),
    NewColumn(name="n", schema=INT32_SCHEMA, is_key=False),
    NewColumn(name="d", schema=decimal_schema(2), is_key=False),
]


def test_tables_are_made_in_the_types_of_the_product() -> None:
    assert Dialect(Product.POSTGRESQL).create("t", COLUMNS) == (
        'CREATE TABLE "t" ("id" TEXT NOT NULL, "note" TEXT, "n" INT NOT NULL, '
        '"d" DECIMAL NOT NULL, PRIMARY KEY ("id"))'
    )
    assert Dialect(Product.MYSQL).create("t", COLUMNS) == (
        "CREATE TABLE `t` (`id` VARCHAR(256) NOT NULL, `note` TEXT, `n` INT NOT NULL, "
        "`d` DECIMAL(65,2) NOT NULL, PRIMARY KEY (`id`))"
    )
    bad = NewColumn(name="l", schema=array_schema(INT32_SCHEMA), is_key=False)
    with pytest.raises(ConnectError, match="field l"):
        Dialect(Product.SQLITE).create("t", [bad])


def test_names_cannot_break_out_of_their_quotes() -> None:
    assert Dialect(Product.POSTGRESQL).column('a"; DROP') == '"a""; DROP"'
    assert Dialect(Product.MYSQL).quoted("s.a`b") == "`s`.`a``b`"


def test_upserts_and_updates() -> None:
    pg, mysql = Dialect(Product.POSTGRESQL), Dialect(Product.MYSQL)
    assert pg.upsert("t", ["id", "v"], ["id"]).endswith(
        'ON CONFLICT ("id") DO UPDATE SET "v" = EXCLUDED."v"'
    )
    assert pg.upsert("t", ["id"], ["id"]).endswith('ON CONFLICT ("id") DO NOTHING')
    assert mysql.upsert("t", ["id", "v"], ["id"]).endswith(
        "ON DUPLICATE KEY UPDATE `v` = VALUES(`v`)"
    )
    assert pg.update("t", ["id", "v"], ["id"]) == 'UPDATE "t" SET "v" = %s WHERE "id" = %s'
    assert Dialect(Product.SQLITE).delete("t", ["id"]) == 'DELETE FROM "t" WHERE "id" = ?'
