"""Messages out of descriptor sets, by name and by place."""

import pickle

import pytest
from google.protobuf import descriptor_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.schemas.protos import add, shop_file, shop_set

from penstock.schemas.errors import DecodeError, SchemaError
from penstock.schemas.protobuf import ProtobufSchema, load


def set_of(*files: descriptor_pb2.FileDescriptorProto) -> bytes:
    return descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()


def test_a_message_is_found_by_name_and_knows_its_place() -> None:
    assert ProtobufSchema.of(shop_set(), "shop.Refund").index_path == (0,)
    assert ProtobufSchema.of(shop_set(), "shop.Order").index_path == (1,)
    assert ProtobufSchema.of(shop_set(), "shop.Order.Line").index_path == (1, 0)


@pytest.mark.parametrize(
    ("path", "name"), [((0,), "Refund"), ((1,), "Order"), ((1, 0), "Order.Line")]
)
def test_a_message_is_found_by_its_place(path: tuple[int, ...], name: str) -> None:
    assert ProtobufSchema.at(shop_set(), path).message == f"shop.{name}"


def test_without_a_name_it_is_the_first_message_of_the_last_file() -> None:
    assert ProtobufSchema.of(shop_set()).message == "shop.Refund"


@given(st.integers(-(2**63), 2**63 - 1), st.text(), st.lists(st.text(), max_size=3))
def test_a_message_comes_back(order_id: int, shop: str, tags: list[str]) -> None:
    schema = ProtobufSchema.of(shop_set(), "shop.Order")
    message = schema.message_class(id=order_id, shop=shop, tags=tags)
    assert schema.decode(message.SerializeToString()) == message


def test_two_versions_of_a_file_live_side_by_side() -> None:
    newer = shop_file()
    add(newer.message_type[0], "reason", "string")
    old = ProtobufSchema.of(shop_set(), "shop.Refund")
    new = ProtobufSchema.of(set_of(newer), "shop.Refund")
    data = new.message_class(order_id=5, reason="late").SerializeToString()
    assert old.decode(data).order_id == 5
    assert new.decode(data).reason == "late"


def test_a_generated_class_brings_its_description_along() -> None:
    schema = ProtobufSchema.of_class(timestamp_pb2.Timestamp)
    copy = pickle.loads(pickle.dumps(schema))
    data = timestamp_pb2.Timestamp(seconds=5).SerializeToString()
    assert (copy.message, copy.decode(data).seconds) == ("google.protobuf.Timestamp", 5)


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(DecodeError, match=r"not a Protobuf message shop\.Order"):
        ProtobufSchema.of(shop_set(), "shop.Order").decode(b"\xff\xff\xff")


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(SchemaError, match=r"no message shop\.Item; it has shop\.Refund"):
        ProtobufSchema.of(shop_set(), "shop.Item")


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"declares no message at \[1, 9\]"):
        ProtobufSchema.at(shop_set(), (1, 9))


@pytest.mark.parametrize("data", [b"\xff\xff", b""])
def test_bytes_that_are_no_descriptor_set_are_refused(data: bytes) -> None:
    with pytest.raises(SchemaError, match="descriptor set"):
        load(data)


def test_an_import_that_is_missing_is_named() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3")
    file.dependency.append("b.proto")
    with pytest.raises(SchemaError, match=r"a\.proto imports b\.proto.*--include_imports"):
        load(set_of(file))


def test_files_may_come_in_any_order() -> None:
    inner = descriptor_pb2.FileDescriptorProto(name="b.proto", package="b", syntax="proto3")
    add(inner.message_type.add(name="Inner"), "id", "int64")
    outer = descriptor_pb2.FileDescriptorProto(name="a.proto", package="a", syntax="proto3")
    outer.dependency.append("b.proto")
    add(outer.message_type.add(name="Outer"), "inner", "b.Inner")
    schema = ProtobufSchema.of(set_of(outer, inner), "a.Outer")
    assert schema.message_class(inner={"id": 3}).inner.id == 3


def test_files_that_import_each_other_are_refused() -> None:
    one = descriptor_pb2.FileDescriptorProto(
        name="a.proto", syntax="proto3", dependency=["b.proto"]
    )
    two = descriptor_pb2.FileDescriptorProto(
        name="b.proto", syntax="proto3", dependency=["a.proto"]
    )
    with pytest.raises(SchemaError, match="imports itself"):
        load(set_of(one, two))
