"""Types and columns as documents."""

from penstock.sql.answers.schemas import schema_text, type_document
from penstock.sql.catalog.relations import RelationColumn
from penstock.sql.types.kinds import BIGINT, STRING, ArrayOf, DecimalOf, MapOf, StructOf


def test_a_type_is_shown_with_its_parts() -> None:
    kind = StructOf((("A", ArrayOf(MapOf(STRING, BIGINT))), ("B", DecimalOf(5, 2))))
    plain = {"type": "BIGINT", "fields": None, "memberSchema": None}
    of_map = {"type": "MAP", "fields": None, "memberSchema": plain}
    assert type_document(kind) == {
        "type": "STRUCT",
        "memberSchema": None,
        "fields": [
            {"name": "A", "schema": {"type": "ARRAY", "fields": None, "memberSchema": of_map}},
            {
                "name": "B",
                "schema": {
                    "type": "DECIMAL",
                    "fields": None,
                    "memberSchema": None,
                    "parameters": {"precision": 5, "scale": 2},
                },
            },
        ],
    }


def test_the_columns_of_a_result_are_one_line() -> None:
    columns = [RelationColumn("K", STRING, "KEY"), RelationColumn("n b", BIGINT)]
    assert schema_text(columns) == "`K` STRING KEY, `n b` BIGINT"
