"""A compiled Protobuf file for the tests, built by hand: no compiler is needed to run them."""

from google.protobuf import descriptor_pb2

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    "bool": Field.TYPE_BOOL,
    "int32": Field.TYPE_INT32,
    "int64": Field.TYPE_INT64,
    "sint64": Field.TYPE_SINT64,
    "uint32": Field.TYPE_UINT32,
    "uint64": Field.TYPE_UINT64,
    "float": Field.TYPE_FLOAT,
    "double": Field.TYPE_DOUBLE,
    "string": Field.TYPE_STRING,
    "bytes": Field.TYPE_BYTES,
}


def add(
    message: descriptor_pb2.DescriptorProto, name: str, kind: str, *, label: str = "optional"
) -> descriptor_pb2.FieldDescriptorProto:
    """A field with the next number; a kind with a dot is a message, one with a colon an enum."""
    field = message.field.add(name=name, number=len(message.field) + 1)
    field.label = Field.LABEL_REPEATED if label == "repeated" else Field.LABEL_OPTIONAL
    if kind in SCALARS:
        field.type = SCALARS[kind]
    elif kind.startswith(":"):
        field.type, field.type_name = Field.TYPE_ENUM, f".{kind[1:]}"
    else:
        field.type, field.type_name = Field.TYPE_MESSAGE, f".{kind}"
    return field


def add_map(message: descriptor_pb2.DescriptorProto, name: str, package: str, kind: str) -> None:
    """A map from string to `kind`."""
    entry_name = f"{name.capitalize()}Entry"
    entry = message.nested_type.add(name=entry_name)
    entry.options.map_entry = True
    add(entry, "key", "string")
    add(entry, "value", kind)
    add(message, name, f"{package}.{message.name}.{entry_name}", label="repeated")


def shop_file() -> descriptor_pb2.FileDescriptorProto:
    """shop.proto: Refund, and Order with a nested Line and a field of nearly every kind."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.extend(
        f"google/protobuf/{name}.proto" for name in ("timestamp", "duration", "wrappers", "struct")
    )
    state = file.enum_type.add(name="State")
    for number, name in enumerate(("NEW", "PAID", "SENT")):
        state.value.add(name=name, number=number)
    add(file.message_type.add(name="Refund"), "order_id", "int64")
    order = file.message_type.add(name="Order")
    line = order.nested_type.add(name="Line")
    add(line, "sku", "string")
    add(line, "count", "uint32")
    for name, kind in (
        ("id", "int64"),
        ("units", "int32"),
        ("big", "uint64"),
        ("signed", "sint64"),
        ("paid", "bool"),
        ("ratio", "double"),
        ("small", "float"),
        ("shop", "string"),
        ("mark", "bytes"),
        ("state", ":shop.State"),
        ("first", "shop.Order.Line"),
        ("ordered_at", "google.protobuf.Timestamp"),
        ("took", "google.protobuf.Duration"),
        ("discount", "google.protobuf.DoubleValue"),
        ("extra", "google.protobuf.Struct"),
    ):
        add(order, name, kind)
    add(order, "lines", "shop.Order.Line", label="repeated")
    add(order, "tags", "string", label="repeated")
    add_map(order, "counts", "shop", "int32")
    add_map(order, "named", "shop", "shop.Order.Line")
    note = add(order, "note", "string")
    note.proto3_optional = True
    note.oneof_index = 0
    order.oneof_decl.add(name="_note")
    return file


def shop_set() -> bytes:
    """shop.proto as a descriptor set, without Google's own files, as some compile it."""
    return descriptor_pb2.FileDescriptorSet(file=[shop_file()]).SerializeToString()
