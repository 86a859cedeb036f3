"""docs/api.md: what the package offers a Python program, out of its own docstrings.

The sources are read, not imported: signatures come out as they are written, whatever Python runs.
"""

import ast
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).resolve().parents[1]

HEAD = """\
# The Python API

This page is written by `make docs` from the docstrings in `src/penstock`. Clients, records, offsets
and topics come from `penstock` itself (`from penstock import Producer`); of the rest the module is
named. Settings are Kafka's own, by their names.

"""

CLIENTS = {
    "Producer": "client.producer.producer",
    "Consumer": "client.consumer.consumer",
    "Admin": "client.admin",
    "AsyncProducer": "client.aio",
    "AsyncConsumer": "client.aio",
}
SERIALIZERS = {
    "AvroSerializer": "schemas.serializers.avro",
    "AvroDeserializer": "schemas.serializers.avro",
    "JsonSchemaSerializer": "schemas.serializers.json_schema",
    "JsonSchemaDeserializer": "schemas.serializers.json_schema",
    "ProtobufSerializer": "schemas.serializers.protobuf",
    "ProtobufDeserializer": "schemas.serializers.protobuf",
}
VALUES = {
    "ProducerRecord": "client.values",
    "RecordMetadata": "client.values",
    "ConsumerRecord": "client.values",
    "ConsumerRecords": "client.values",
    "RecordHeaders": "client.headers",
    "TopicPartition": "records.topic_partition",
    "OffsetAndMetadata": "client.values",
    "OffsetAndTimestamp": "client.values",
    "OffsetSpec": "client.operations.offsets",
    "NewTopic": "client.operations.topics",
    "NewPartitions": "client.operations.topics",
    "ConfigResource": "client.operations.configs",
    "ConfigChange": "client.operations.configs",
    "ResourceType": "client.operations.configs",
    "PenstockError": "errors",
}
MORE = {
    "client.values": ("Node", "PartitionInfo", "MetricName", "Metric"),
    "client.serialization": ("Serializer", "Deserializer"),
    "schemas.registry_client": ("RegistryClient", "ReferencedVersion", "RegisteredSchema"),
    "client.consumer.rebalance": ("RebalanceListener",),
    "client.interceptors": ("ProducerInterceptor", "ConsumerInterceptor"),
    "client.operations.topics": ("TopicListing", "TopicDescription", "PartitionDescription"),
    "client.operations.configs": ("Operation", "ConfigEntry", "ConfigSynonym", "ConfigSource"),
    "client.operations.brokers": (
        "ClusterDescription",
        "BrokerDescription",
        "LogDirDescription",
        "ReplicaSize",
        "ProducerDescription",
    ),
    "client.operations.groups": ("GroupListing", "GroupDescription", "MemberDescription"),
    "client.operations.transactions": (
        "TransactionListing",
        "TransactionDescription",
        "HangingTransaction",
    ),
    "client.operations.reassignments": ("Replica", "PartitionReassignment"),
    "client.operations.replica_log_dirs": ("ReplicaLogDirs",),
    "client.operations.elections": ("ElectionType",),
}
# Names for types that signatures use.
_ALIASES = (
    "client.headers",
    "client.values",
    "client.producer.producer",
    "client.consumer.commits",
    "client.operations.quotas",
)
_FORMATS_HEAD = """\
## Formats of keys and values

What `key=` and `value=` of the clients may name, and what a program then handles. Kafka's class
names (`org.apache.kafka.common.serialization.LongSerializer`), classes of your own
(`shop.serde.PriceSerializer`) and plain functions do too. `avro`, `json-schema` and `protobuf`
work with a schema registry: [serializers.md](serializers.md).

| word | Python type |
| --- | --- |
"""
_PYTHON_TYPES = {
    "string": "str",
    "bytearray": "bytes",
    "bytebuffer": "bytes",
    "bytes": "bytes",
    "short": "int, 16 bits",
    "integer": "int, 32 bits",
    "long": "int, 64 bits",
    "float": "float, 32 bits",
    "double": "float, 64 bits",
    "boolean": "bool",
    "uuid": "uuid.UUID",
    "void": "None",
    "json": "what json.dumps takes and json.loads gives",
}
# The type variables of the sources, by what a reader knows them as.
_TYPE_NAMES = {"SentK": "K", "SentV": "V", "RecordK": "K", "RecordV": "V"}

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class _Module(NamedTuple):
    """A source file, read."""

    name: str
    lines: list[str]
    tree: ast.Module

    @classmethod
    def read(cls, name: str) -> "_Module":
        text = (ROOT / f"{name.replace('.', '/')}.py").read_text()
        return cls(name, text.splitlines(), ast.parse(text))

    def class_named(self, name: str) -> ast.ClassDef:
        found = [n for n in self.tree.body if isinstance(n, ast.ClassDef) and n.name == name]
        return found[0]


def api_document(formats: Iterable[str]) -> str:
    """The page; `formats` are the words that the clients take."""
    parts = [HEAD]
    parts += [_class(_Module.read(module), name) for name, module in CLIENTS.items()]
    parts.append(_FORMATS_HEAD + "".join(f"| `{w}` | {_PYTHON_TYPES[w]} |\n" for w in formats))
    parts.append("\n## Serializers\n\n")
    parts += [_class(_Module.read(module), name, level=3) for name, module in SERIALIZERS.items()]
    parts.append("\n## Records, offsets, topics\n\n")
    parts += [_class(_Module.read(module), name, level=3) for name, module in VALUES.items()]
    for module, names in MORE.items():
        read = _Module.read(module)
        parts.append(f"## penstock.{module}\n\n")
        parts += [_class(read, name, level=3) for name in names]
    parts.append(_aliases())
    parts.append(_errors())
    return "".join(parts)


def public_methods(module: str, name: str) -> list[str]:
    """The names that a class offers, as the page must have them."""
    return [method.name for method in _methods(_Module.read(module).class_named(name))]


def _class(module: _Module, name: str, *, level: int = 2) -> str:
    node = module.class_named(name)
    text = f"{'#' * level} {name}\n\n{_paragraphs(node)}\n\n"
    made = [f for f in _functions(node) if f.name == "__init__" and not _is_overload(f)]
    if made:
        text += f"```python\n{_signature(made[0], name)}\n```\n\n"
    rows = [_field(module, field) for field in _fields(node)]
    rows += [_method(method) for method in _methods(node)]
    return text + "".join(rows) + ("\n" if rows else "")


def _aliases() -> str:
    rows = [
        f"- `{ast.unparse(node.target)}` is `{_types(ast.unparse(node.value))}`\n"
        for module in _ALIASES
        for node in _Module.read(module).tree.body
        if isinstance(node, ast.AnnAssign)
        and node.value is not None
        and ast.unparse(node.annotation) == "TypeAlias"
        and not ast.unparse(node.target).startswith("_")
    ]
    return "## Names for types\n\n" + "".join(rows) + "\n"


def _errors() -> str:
    module = _Module.read("client.errors")
    told = ast.get_docstring(module.tree) or ""
    tree = "\n".join(line for line in told.splitlines() if line.startswith("    "))
    return (
        "## Errors\n\nAll are `penstock.PenstockError`. What a broker answers is a class of "
        "`penstock.errors`, one for each\nerror code of Kafka; what goes wrong on this side is one "
        f"of `penstock.client.errors`:\n\n```text\n{inspect.cleandoc(tree)}\n```\n"
    )


def _paragraphs(node: ast.ClassDef | _Function) -> str:
    return ast.get_docstring(node) or ""


def _functions(node: ast.ClassDef) -> list[_Function]:
    return [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def _methods(node: ast.ClassDef) -> list[_Function]:
    return [f for f in _functions(node) if not f.name.startswith("_") and not _is_overload(f)]


def _fields(node: ast.ClassDef) -> list[ast.AnnAssign | ast.Assign]:
    """The fields of a value, or the words of an enumeration."""
    if any("Enum" in ast.unparse(base) for base in node.bases):
        return [each for each in node.body if isinstance(each, ast.Assign)]
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    return [each for each in fields if not ast.unparse(each.target).startswith("_")]


def _field(module: _Module, node: ast.AnnAssign | ast.Assign) -> str:
    text = _types(ast.unparse(node))
    comment = module.lines[node.lineno - 1].partition("  # ")[2]
    return f"- `{text}`{': ' if comment else ''}{comment}\n"


def _method(node: _Function) -> str:
    decorators = [ast.unparse(one) for one in node.decorator_list]
    if "property" in decorators:
        call = f"{node.name} -> {_types(ast.unparse(node.returns))}" if node.returns else node.name
    else:
        call = _signature(node, node.name)
    first, *rest = _paragraphs(node).split("\n\n")
    more = "".join(f"  {_flat(paragraph)}\n" for paragraph in rest)
    return f"- `{call}`: {_flat(first)}\n{more}"


def _signature(node: _Function, name: str) -> str:
    """A call as it is written, without self."""
    arguments = _types(ast.unparse(node.args))
    arguments = re.sub(r"^self(?:, )?", "", arguments).replace("=", " = ")
    returns = "" if node.name == "__init__" or node.returns is None else ast.unparse(node.returns)
    word = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    return f"{word}{name}({arguments})" + (f" -> {_types(returns)}" if returns else "")


def _types(text: str) -> str:
    for ours, known in _TYPE_NAMES.items():
        text = re.sub(rf"\b{ours}\b", known, text)
    return text.replace("_Config", "Mapping[str, object] | None")


def _is_overload(node: _Function) -> bool:
    return any(ast.unparse(one) == "overload" for one in node.decorator_list)


def _flat(text: str) -> str:
    return " ".join(text.split())
