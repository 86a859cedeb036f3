"""The names that schemas of each language give their records."""

from tests.unit.schemas.checking.samples import AVRO, JSON, PROTOBUF, STORED

from penstock.schemas.checking.record_names import record_names
from penstock.schemas.lookup import SchemaKind, StoredSchema


def test_each_language_has_its_own_place_for_names() -> None:
    assert record_names(STORED[AVRO]) == {"shop.Order"}
    assert record_names(STORED[JSON]) == {"Person"}
    assert {"shop.Refund", "shop.Order", "shop.Order.Line"} <= record_names(STORED[PROTOBUF])


def test_a_schema_may_name_nothing() -> None:
    for kind, text in ((SchemaKind.AVRO, '"string"'), (SchemaKind.JSON, "true")):
        assert record_names(StoredSchema(schema_id=1, kind=kind, text=text)) == frozenset()
