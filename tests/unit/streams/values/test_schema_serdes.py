"""Values with a registry's header go through a topology, and old writers' values are read too."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark import cloudpickle
from tests.unit.schemas.protos import shop_set

from penstock.schemas.errors import SchemaError, UnknownSchema
from penstock.schemas.lookup import SchemaKind, StoredSchema
from penstock.schemas.registry_client import RegistryClient
from penstock.streams import BYTES, Serde, SerdeError, StreamsBuilder, TestDriver
from penstock.streams.values.schema_serdes import (
    avro,
    json_with_schema,
    protobuf,
    protobuf_message,
)

AVRO_OLD, AVRO_NEW, JSON_SCHEMA, SHOP = 7, 8, 9, 300
OLD_FIELDS = [{"name": "cents", "type": "long"}, {"name": "memo", "type": "string"}]
NEW_FIELDS = [OLD_FIELDS[0], {"name": "shop", "type": "string", "default": "none"}]


@dataclass(frozen=True, slots=True)
class Known:
    """A lookup with schemas of all three kinds, which notes what it is asked."""

    asked: list[int] = field(default_factory=list)

    def by_id(self, schema_id: int) -> StoredSchema:
        self.asked.append(schema_id)
        match schema_id:
            case 7 | 8:
                fields = OLD_FIELDS if schema_id == AVRO_OLD else NEW_FIELDS
                text = json.dumps({"type": "record", "name": "Order", "fields": fields})
                return StoredSchema(schema_id=schema_id, kind=SchemaKind.AVRO, text=text)
            case 9:
                return StoredSchema(schema_id=9, kind=SchemaKind.JSON, text='{"type":"object"}')
            case 300:
                kind = SchemaKind.PROTOBUF
                return StoredSchema(schema_id=300, kind=kind, descriptor_set=shop_set())
        raise UnknownSchema(schema_id, "the test")


def passed(serde_in: Serde[Any], serde_out: Serde[Any], value: Any, change: Any) -> Any:
    """What a topology writes that reads, changes and writes one value."""
    builder = StreamsBuilder()
    builder.stream("in", value=serde_in).map_values(change).to("out", value=serde_out)
    with TestDriver(builder.build()) as driver:
        driver.pipe_input("in", "k", value, 0)
        written = driver.read_output("out")
    assert written is not None
    return written.value


def test_avro_values_are_aggregated_under_their_schema() -> None:
    orders = avro(Known(), AVRO_NEW)
    builder = StreamsBuilder()
    grouped = builder.stream("orders", value=orders).group_by_key()
    grouped.reduce(
        lambda total, order: {**total, "cents": total["cents"] + order["cents"]}, store="sums"
    ).to_stream().to("sums")
    with TestDriver(builder.build()) as driver:
        driver.pipe_input("orders", "k", {"cents": 3, "shop": "a"}, 0)
        driver.pipe_input("orders", "k", {"cents": 4, "shop": "b"}, 1)
        sums = [record.value for record in driver.read_all("sums")]
    assert sums == [{"cents": 3, "shop": "a"}, {"cents": 7, "shop": "a"}]


def test_an_avro_value_is_its_header_and_its_fields() -> None:
    written = avro(Known(), AVRO_NEW).serialize({"cents": 3, "shop": "a"})
    assert written == b"\x00\x00\x00\x00\x08" + b"\x06" + b"\x02a"


def test_an_avro_value_of_an_old_writer_is_read_as_the_new_schema_wants_it() -> None:
    lookup = Known()
    new, old = avro(lookup, AVRO_NEW), avro(lookup, AVRO_OLD)
    data = old.serialize({"cents": 5, "memo": "gift"})
    lookup.asked.clear()
    assert [new.deserialize(data), new.deserialize(data)] == [{"cents": 5, "shop": "none"}] * 2
    assert lookup.asked == [AVRO_OLD]


def test_protobuf_messages_pass_through_a_topology() -> None:
    lookup = Known()
    order_class = protobuf_message(lookup, SHOP, "shop.Order")
    orders = protobuf(lookup, SHOP, "shop.Order")
    refunds = protobuf(lookup, SHOP)
    refund_class = protobuf_message(lookup, SHOP)

    def refund(order: Any) -> Any:
        return refund_class(order_id=order.id)

    written = passed(orders, refunds, order_class(id=12), refund)
    assert (written.DESCRIPTOR.full_name, written.order_id) == ("shop.Refund", 12)


def test_a_protobuf_value_names_its_message_by_its_place_in_the_file() -> None:
    lookup = Known()
    line_class = protobuf_message(lookup, SHOP, "shop.Order.Line")
    line = protobuf(lookup, SHOP, "shop.Order.Line").serialize(line_class(count=1))
    assert line == b"\x00\x00\x00\x01\x2c" + b"\x04\x02\x00" + b"\x10\x01"
    refund_class = protobuf_message(lookup, SHOP)
    refund = protobuf(lookup, SHOP).serialize(refund_class(order_id=1))
    assert refund == b"\x00\x00\x00\x01\x2c" + b"\x00" + b"\x08\x01"


def test_json_values_have_the_header_of_their_schema() -> None:
    orders = json_with_schema(Known(), JSON_SCHEMA)
    data = b'\x00\x00\x00\x00\x09{"cents":3}'
    assert passed(orders, BYTES, {"cents": 3}, orders.serialize) == data
    assert orders.deserialize(data) == {"cents": 3}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x01\x00\x00\x00\x08", "no header"),
        (b"\x00\x00", "too few"),
        (b"\x00\x00\x00\x00\x63\x06", "no schema with id 99"),
        (b"\x00\x00\x00\x00\x09{}", "is JSON, not AVRO"),
        (b"\x00\x00\x00\x00\x08\x06", "end too early"),
    ],
)
def test_bytes_that_are_not_of_the_schema_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(SerdeError, match=reason) as refused:
        avro(Known(), AVRO_NEW).deserialize(data)
    assert "Avro serde" in str(refused.value)


def test_values_that_are_not_of_the_schema_are_refused() -> None:
    lookup = Known()
    with pytest.raises(SerdeError, match="Avro serde"):
        avro(lookup, AVRO_NEW).serialize({"cents": "three"})
    with pytest.raises(SerdeError, match=r"is a shop\.Refund"):
        protobuf(lookup, SHOP, "shop.Order").serialize(protobuf_message(lookup, SHOP)())
    with pytest.raises(SerdeError, match="Protobuf serde"):
        protobuf(lookup, SHOP).serialize("no message")
    with pytest.raises(SerdeError, match="not JSON"):
        json_with_schema(lookup, JSON_SCHEMA).deserialize(b"\x00\x00\x00\x00\x09{")


def test_a_schema_of_another_kind_is_refused_at_once() -> None:
    with pytest.raises(SchemaError, match="is JSON, not AVRO"):
        avro(Known(), JSON_SCHEMA)
    with pytest.raises(SchemaError, match="is AVRO, not PROTOBUF"):
        protobuf(Known(), AVRO_NEW)
    with pytest.raises(SchemaError, match="is AVRO, not JSON"):
        json_with_schema(Known(), AVRO_NEW)


@pytest.mark.parametrize(
    "serde",
    [avro(Known(), AVRO_NEW), protobuf(Known(), SHOP), json_with_schema(Known(), JSON_SCHEMA)],
    ids=lambda serde: str(serde.name),
)
def test_none_stays_a_tombstone_without_a_header(serde: Serde[Any]) -> None:
    assert (serde.serialize(None), serde.deserialize(None)) == (None, None)


@pytest.mark.parametrize(
    ("serde", "data"),
    [
        (avro(Known(), AVRO_NEW), b"\x00\x00\x00\x00\x08\x06\x02a"),
        (protobuf(Known(), SHOP), b"\x00\x00\x00\x01\x2c\x00\x08\x01"),
        (json_with_schema(Known(), JSON_SCHEMA), b'\x00\x00\x00\x00\x09{"cents":3}'),
    ],
    ids=lambda one: str(getattr(one, "name", "")),
)
def test_a_serde_that_was_used_does_the_same_in_a_worker(serde: Serde[Any], data: bytes) -> None:
    serde.deserialize(data)
    there = cloudpickle.loads(cloudpickle.dumps(serde))
    assert there.serialize(there.deserialize(data)) == data


def test_a_registry_travels_with_a_serde_and_forgets_what_it_knew() -> None:
    client = cloudpickle.loads(cloudpickle.dumps(RegistryClient("http://nowhere:1")))
    assert client.urls == ("http://nowhere:1",)
