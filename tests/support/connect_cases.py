"""Random cases for Connect's transforms, predicates and converters, by seed, as JSON.

Each case is asked of Kafka's own class (`tests/compat/java/ConnectJudge.java`) and of ours; the
answers must be the same. An answer is a record, bytes, a value, or that it failed.
"""

import base64
import json
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tests.support.connect_values import (
    record_node,
    record_of,
    schema_node,
    schema_of,
    value_node,
    value_of,
)

from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.config_def import ConfigDef
from penstock.connect.plugins.lookup import PluginKind, load_plugin, plugins
from penstock.connect.values.java_numbers import single
from penstock.connect.values.logical import (
    DATE_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    date_of,
    decimal_schema,
    time_of,
    timestamp_of,
)
from penstock.connect.values.schema import Schema, SchemaField, SchemaType
from penstock.connect.values.struct import StructValue
from penstock.errors import ConfigError

Case = dict[str, Any]
TRANSFORMS = "org.apache.kafka.connect.transforms"
NAMES = ["a", "b", "c", "d", "x.y", "id"]
WORDS = ["", "x", "hello", "Grüße", "12", "-7", "1.5", "true", 'a"b\\c', "2020-01-02", "null"]
INTEGERS = [0, 1, -1, 5, 127, -128, 128, 300, 40_000, -70_000, 2**31, -(2**40), 2**62]
FLOATS = [0.0, 1.5, -2.25, 3.14159, 1e10, 1e-5, 123456.789, -1e20, 100.0]
TIMES_MS = [0, 1, 1_577_934_245_678, 86_400_000, 951_868_799_999, 4_102_444_800_000]


def random_schema(rng: random.Random, depth: int = 0, *, fields: bool = False) -> Schema:
    """A schema: mostly of numbers and texts, sometimes of others inside others."""
    optional = rng.random() < 0.4
    if fields or (depth < 2 and rng.random() < 0.15):
        count = rng.randint(1, 4)
        listed = [SchemaField(n, random_schema(rng, depth + 1)) for n in rng.sample(NAMES, count)]
        named = {"name": rng.choice([None, "com.Example"]), "doc": rng.choice([None, "some words"])}
        version = rng.choice([None, 1, 7])
        told: dict[str, Any] = {"fields": tuple(listed), "version": version, **named}
        return Schema(type=SchemaType.STRUCT, optional=optional and depth > 0, **told)
    if depth < 2 and rng.random() < 0.15:
        inner = random_schema(rng, depth + 1)
        if rng.random() < 0.5:
            return Schema(type=SchemaType.ARRAY, value_schema=inner, optional=optional)
        keys = Schema(type=rng.choice([SchemaType.STRING, SchemaType.INT32]))
        return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=inner, optional=optional)
    if rng.random() < 0.25:
        logical = rng.choice([DATE_SCHEMA, TIME_SCHEMA, TIMESTAMP_SCHEMA, decimal_schema(2)])
        return logical.as_optional() if optional else logical
    kinds = [kind for kind in SchemaType if kind.is_primitive]
    made = Schema(type=rng.choice(kinds), optional=optional)
    if rng.random() < 0.2:
        default = random_value(rng, Schema(type=made.type))
        return Schema(type=made.type, optional=optional, default=default)
    return made


def random_value(rng: random.Random, schema: Schema) -> Any:
    """A value of a schema."""
    if schema.optional and rng.random() < 0.3:
        return None
    at = rng.choice(TIMES_MS)
    match schema.name:
        case "org.apache.kafka.connect.data.Date":
            return date_of(at // 86_400_000)
        case "org.apache.kafka.connect.data.Time":
            return time_of(at % 86_400_000)
        case "org.apache.kafka.connect.data.Timestamp":
            return timestamp_of(at)
        case "org.apache.kafka.connect.data.Decimal":
            return Decimal(rng.choice(["0.00", "1.23", "-45.60", "123456789.01"]))
    return _VALUES[schema.type](rng, schema)


def _whole(bits: int) -> Callable[[random.Random, Schema], int]:
    bound = 1 << (bits - 1)
    return lambda rng, _: rng.choice([n for n in INTEGERS if -bound <= n < bound])


def _inner(schema: Schema | None) -> Schema:
    assert schema is not None
    return schema


_VALUES: dict[SchemaType, Callable[[random.Random, Schema], Any]] = {
    SchemaType.INT8: _whole(8),
    SchemaType.INT16: _whole(16),
    SchemaType.INT32: _whole(32),
    SchemaType.INT64: _whole(64),
    SchemaType.FLOAT32: lambda rng, _: single(rng.choice(FLOATS)),
    SchemaType.FLOAT64: lambda rng, _: rng.choice(FLOATS),
    SchemaType.BOOLEAN: lambda rng, _: rng.random() < 0.5,
    SchemaType.STRING: lambda rng, _: rng.choice(WORDS),
    SchemaType.BYTES: lambda rng, _: rng.randbytes(rng.randint(0, 5)),
    SchemaType.ARRAY: lambda rng, schema: [
        random_value(rng, _inner(schema.value_schema)) for _ in range(rng.randint(0, 3))
    ],
    SchemaType.MAP: lambda rng, schema: {
        random_value(rng, _inner(schema.key_schema)): random_value(rng, _inner(schema.value_schema))
        for _ in range(rng.randint(0, 3))
    },
    SchemaType.STRUCT: lambda rng, schema: StructValue(
        schema, tuple(random_value(rng, one.schema) for one in schema.fields)
    ),
}


def random_plain(rng: random.Random, depth: int = 0) -> Any:
    """A value without a schema."""
    kind = rng.randrange(9 if depth < 2 else 6)
    if kind == 6:
        return [random_plain(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    if kind >= 7:
        return {n: random_plain(rng, depth + 1) for n in rng.sample(NAMES, rng.randint(0, 3))}
    return [
        None,
        rng.random() < 0.5,
        rng.choice(INTEGERS),
        rng.choice(FLOATS),
        rng.choice(WORDS),
        rng.randbytes(3),
    ][kind]


def random_side(rng: random.Random) -> tuple[Schema | None, Any]:
    """A schema with a value, or a value alone."""
    style = rng.random()
    if style < 0.5:
        schema = random_schema(rng, fields=True)
        return schema, random_value(rng, schema)
    if style < 0.8:
        return None, {n: random_plain(rng, 1) for n in rng.sample(NAMES, rng.randint(1, 4))}
    if style < 0.9:
        schema = random_schema(rng)
        return schema, random_value(rng, schema)
    return None, random_plain(rng)


def random_record(rng: random.Random) -> Case:
    """A record, of a source or of a sink."""
    (keys, key), (values, value) = random_side(rng), random_side(rng)
    headers = []
    for name in rng.sample(["h1", "h2", "h3"], rng.randint(0, 2)):
        schema = rng.choice([None, Schema(type=SchemaType.STRING), Schema(type=SchemaType.INT64)])
        found = rng.choice(WORDS) if schema is None else random_value(rng, schema)
        headers.append({"name": name, "schema": schema_node(schema), "value": value_node(found)})
    return {
        "topic": rng.choice(["orders", "metrics-2020", "a.b"]),
        "partition": rng.choice([0, 3]),
        "timestamp": rng.choice([None, *TIMES_MS]),
        "offset": rng.choice([None, 42]),
        "key_schema": schema_node(keys),
        "key": value_node(key),
        "value_schema": schema_node(values),
        "value": value_node(value),
        "headers": headers,
    }


def _some(rng: random.Random, most: int = 2) -> str:
    return ",".join(rng.sample(NAMES, rng.randint(1, most)))


PATTERNS = ["yyyy-MM-dd", "yyyyMMddHHmmss", "yyyy-MM-dd'T'HH:mm:ss.SSSX", "EEE, d MMM yy", "h:mm a"]
TYPES = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "bytes"]
LITERALS = [
    "1",
    "-300",
    "1.5",
    "abc",
    "true",
    "2020-01-02",
    "12:30:00.000Z",
    "[1, 2, 3]",
    "null",
    '{"a": 1, "b": 2}',
    "99999999999",
    "1e3",
    "[1, 2.5]",
    '["a", "b"]',
    "[1, a]",
    "",
    "2020-01-02T03:04:05.678Z",
    "{1:2}",
    "0.1",
    "[]",
    "{}",
    "true}",
    "123456789012345678901",
]


def _insert_field(rng: random.Random) -> dict[str, str]:
    made = {
        f"{kind}.field": rng.choice([f"new_{kind}", f"new_{kind}!", f"new_{kind}?"])
        for kind in rng.sample(["topic", "partition", "offset", "timestamp", "static"], 2)
    }
    return {**made, "static.value": "fixed"} if rng.random() < 0.9 else made


def _header_from(rng: random.Random) -> dict[str, str]:
    fields = rng.sample(NAMES, rng.randint(1, 2))
    headers = ",".join(f"h{at}" for at in range(len(fields)))
    return {
        "fields": ",".join(fields),
        "headers": headers,
        "operation": rng.choice(["move", "copy"]),
    }


def _timestamps(rng: random.Random) -> dict[str, str]:
    made = {"target.type": rng.choice(["string", "unix", "Date", "Time", "Timestamp"])}
    if rng.random() < 0.8:
        made["format"] = rng.choice(PATTERNS)
    if rng.random() < 0.5:
        made["unix.precision"] = rng.choice(
            ["seconds", "milliseconds", "microseconds", "nanoseconds"]
        )
    return {**made, "field": rng.choice(["", "a", "b", "id"])}


CONFIGS: dict[str, Callable[[random.Random], dict[str, str]]] = {
    "Cast": lambda rng: {
        "spec": rng.choice(TYPES)
        if rng.random() < 0.3
        else ",".join(f"{name}:{rng.choice(TYPES)}" for name in rng.sample(NAMES[:4], 2))
    },
    "ExtractField": lambda rng: {
        "field": rng.choice([*NAMES, "a.b", "`x.y`.a"]),
        "field.syntax.version": rng.choice(["V1", "V2"]),
    },
    "Flatten": lambda rng: {"delimiter": rng.choice([".", "_"])},
    "HeaderFrom": _header_from,
    "HoistField": lambda rng: {"field": rng.choice(["all", "x"])},
    "InsertField": _insert_field,
    "MaskField": lambda rng: (
        {"fields": _some(rng)}
        | rng.choice([{}, {"replacement": rng.choice(["7", "x", "1.9", "300"])}])
    ),
    "ReplaceField": lambda rng: rng.choice(
        [
            {"exclude": _some(rng)},
            {"include": _some(rng, 3)},
            {"renames": rng.choice(["a:b", "a:z", "a:b,b:a", "id:key,c:q"])},
            {"exclude": "b", "renames": "a:b"},
        ]
    ),
    "SetSchemaMetadata": lambda rng: rng.choice(
        [
            {"schema.name": "New"},
            {"schema.version": "4"},
            {"schema.name": "N", "schema.version": "2"},
        ]
    ),
    "TimestampConverter": _timestamps,
    "DropHeaders": lambda rng: {"headers": rng.choice(["h1", "h2,h3", "h9"])},
    "Filter": lambda rng: {},
    "InsertHeader": lambda rng: {"header": "new", "value.literal": rng.choice(LITERALS)},
    "RegexRouter": lambda rng: {
        "regex": rng.choice([".*", "(.*)-(\\d+)", "orders", "(a)\\.(b)", "o(.*)"]),
        "replacement": rng.choice(["new", "$1", "x-$1-y"]),
    },
    "TimestampRouter": lambda rng: rng.choice(
        [{}, {"topic.format": "${timestamp}.${topic}", "timestamp.format": rng.choice(PATTERNS)}]
    ),
    "ValueToKey": lambda rng: {"fields": _some(rng)},
}
WHOLE = {"DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey"}
NULLABLE = {
    "Cast",
    "ExtractField",
    "HeaderFrom",
    "InsertField",
    "MaskField",
    "ReplaceField",
    "SetSchemaMetadata",
    "TimestampConverter",
    "ValueToKey",
}


def transform_case(name: str, seed: int) -> Case:
    """A case of one transform."""
    rng = random.Random(f"{name}-{seed}")
    config = CONFIGS[name](rng)
    if name in NULLABLE and rng.random() < 0.3:
        config["replace.null.with.default"] = "false"
    side = "" if name in WHOLE else rng.choice(["$Key", "$Value"])
    record = random_record(rng)
    return {
        "kind": "transform",
        "class": f"{TRANSFORMS}.{name}{side}",
        "config": config,
        "record": record,
    }


PREDICATES: dict[str, Callable[[random.Random], dict[str, str]]] = {
    "HasHeaderKey": lambda rng: {"name": rng.choice(["h1", "h2", "no"])},
    "RecordIsTombstone": lambda rng: {},
    "TopicNameMatches": lambda rng: {"pattern": rng.choice(["orders", "o.*", ".*-\\d+", "a.b"])},
}


def predicate_case(name: str, seed: int) -> Case:
    """A case of one predicate."""
    rng = random.Random(f"{name}-{seed}")
    return {
        "kind": "predicate",
        "class": f"{TRANSFORMS}.predicates.{name}",
        "config": PREDICATES[name](rng),
        "record": random_record(rng),
    }


JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
PLAIN = "org.apache.kafka.connect.converters"
KINDS = {
    "ByteArray": SchemaType.BYTES,
    "Boolean": SchemaType.BOOLEAN,
    "Short": SchemaType.INT16,
    "Integer": SchemaType.INT32,
    "Long": SchemaType.INT64,
    "Float": SchemaType.FLOAT32,
    "Double": SchemaType.FLOAT64,
}


def _json_config(rng: random.Random) -> dict[str, str]:
    config = {"schemas.enable": rng.choice(["true", "false"])}
    if rng.random() < 0.4:
        config["decimal.format"] = "NUMERIC"
    if rng.random() < 0.3:
        config["replace.null.with.default"] = "false"
    return config


def _document(rng: random.Random) -> Any:
    """What a JsonConverter may be given, right and wrong."""
    kinds = ["int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes"]
    inner: dict[str, Any] = {"type": rng.choice(kinds), "optional": rng.random() < 0.5}
    if rng.random() < 0.2:
        inner["default"] = rng.choice([1, "QUI=", True])
    shape = rng.randrange(5)
    payload: Any = rng.choice([1, 300, -1, 1.5, True, "text", "QUJD", None, 2**40, [1], {"a": 1}])
    if shape == 0:
        return {"schema": inner, "payload": payload}
    if shape == 1:
        fields = [{**inner, "field": "a"}, {"type": "string", "optional": True, "field": "b"}]
        schema = {"type": "struct", "fields": fields, "name": "S", "version": 2}
        return {"schema": schema, "payload": {"a": payload, "b": rng.choice(["x", None, 4])}}
    if shape == 2:
        items: Any = rng.choice([[1, 2], [payload], None, {}, []])
        return {"schema": {"type": "array", "items": inner}, "payload": items}
    if shape == 3:
        keys = {"type": rng.choice(["string", "int32"])}
        entries = rng.choice([{"k": payload}, [[1, payload]], [[1]]])
        return {"schema": {"type": "map", "keys": keys, "values": inner}, "payload": entries}
    return rng.choice(
        [payload, {"schema": None, "payload": payload}, {"payload": 1}, [1, {"a": None}]]
    )


def converter_case(name: str, seed: int) -> Case:
    """A case of one converter: from a value to bytes, or from bytes to a value."""
    rng = random.Random(f"{name}-{seed}")
    if name == JSON:
        config = _json_config(rng)
        if rng.random() < 0.5:
            text = json.dumps(_document(rng))
            return _to(name, config, rng.choice([text, text, text, text[:-1], ""]).encode())
        return _from(name, config, *random_side(rng))
    if name == SIMPLE:
        if rng.random() < 0.6:
            # Java has no answer at all to "null".
            text = rng.choice([one for one in LITERALS + WORDS if one != "null"])
            return {**_to(name, {}, text.encode()), "kind": "header_to"}
        schema = random_schema(rng)
        return {**_from(name, {}, schema, random_value(rng, schema)), "kind": "header_from"}
    if name == STRING:
        if rng.random() < 0.3:
            return _to(name, {}, rng.choice(WORDS).encode())
        kinds = [k for k in SchemaType if k.is_primitive and k is not SchemaType.BYTES]
        schema = Schema(type=rng.choice(kinds))
        return _from(name, {}, schema, random_value(rng, schema))
    kind = KINDS[name.rpartition(".")[2].removesuffix("Converter")]
    if rng.random() < 0.5:
        return _to(
            name, {}, rng.choice([b"", b"\0", b"\1", b"\2", rng.randbytes(rng.choice([2, 4, 8]))])
        )
    schema = Schema(type=rng.choice([kind, kind, kind, rng.choice([*KINDS.values()])]))
    return _from(name, {}, schema, random_value(rng, schema))


def _to(name: str, config: dict[str, str], data: bytes) -> Case:
    shown = base64.b64encode(data).decode()
    return {"kind": "to", "class": name, "config": config, "data": shown}


def _from(name: str, config: dict[str, str], schema: Schema | None, value: Any) -> Case:
    told = {"schema": schema_node(schema), "value": value_node(value)}
    return {"kind": "from", "class": name, "config": config, **told}


CONVERTERS = [JSON, STRING, SIMPLE, *(f"{PLAIN}.{name}Converter" for name in KINDS)]


def all_cases(count: int, first_seed: int = 0) -> list[Case]:
    """So many cases of each transform, predicate and converter."""
    seeds = range(first_seed, first_seed + count)
    return [
        *(transform_case(name, seed) for name in CONFIGS for seed in seeds),
        *(predicate_case(name, seed) for name in PREDICATES for seed in seeds),
        *(converter_case(name, seed) for name in CONVERTERS for seed in seeds),
    ]


# What is wrong in settings, for the words that refuse it.
WRONG: dict[str, list[dict[str, str]]] = {
    f"{TRANSFORMS}.Cast$Value": [{}, {"spec": ""}, {"spec": "a:int8:b"}, {"spec": "a:map"}],
    f"{TRANSFORMS}.ExtractField$Value": [{}, {"field": "a", "field.syntax.version": "V3"}],
    f"{TRANSFORMS}.HeaderFrom$Value": [{}, {"fields": "", "headers": "h", "operation": "x"}],
    f"{TRANSFORMS}.HoistField$Key": [{}, {"field": ""}],
    f"{TRANSFORMS}.MaskField$Value": [
        {},
        {"fields": "a", "replacement": ""},
        {"fields": ""},
        {"fields": "a,a"},
        {"fields": "a,,b"},
    ],
    f"{TRANSFORMS}.ReplaceField$Value": [
        {"renames": "a"},
        {"renames": "a:b:c"},
        {"exclude": "a,a"},
        {"include": "b,b"},
        {"include": ","},
    ],
    f"{TRANSFORMS}.SetSchemaMetadata$Value": [{"schema.version": "x"}],
    f"{TRANSFORMS}.TimestampConverter$Value": [{}, {"target.type": "no", "unix.precision": "x"}],
    f"{TRANSFORMS}.DropHeaders": [{}, {"headers": ""}],
    f"{TRANSFORMS}.InsertHeader": [{}, {"header": "h"}],
    f"{TRANSFORMS}.ValueToKey": [{}, {"fields": "a", "replace.null.with.default": "maybe"}],
    f"{TRANSFORMS}.predicates.HasHeaderKey": [{}, {"name": ""}],
    JSON: [{}, {"converter.type": "x", "schemas.enable": "1", "schemas.cache.size": "-1"}],
}
PLUGINS = [
    (kind, plugin.name)
    for kind in (PluginKind.TRANSFORM, PluginKind.PREDICATE, PluginKind.CONVERTER)
    for plugin in plugins(kind)
    if plugin.name.startswith("org.apache.kafka")
]


def settings_cases() -> list[Case]:
    """Every definition of settings, and what is said about wrong ones."""
    defined = [{"kind": "definition", "class": name} for _, name in PLUGINS]
    wrong = [
        {"kind": "validate", "class": name, "config": config}
        for name, configs in WRONG.items()
        for config in configs
    ]
    return [*defined, *wrong]


def answered(case: Case) -> Any:
    """Our answer, in the form that `known` gives the judge's."""
    try:
        return known(_ANSWERS[case["kind"]](case))
    except (ConnectError, ConfigError):
        return "failed"


def known(answer: Any) -> Any:
    """An answer in a form that can be compared."""
    if "error" in answer:
        return "failed"
    if "data" in answer and answer["data"] is not None:
        return {"data": _read(base64.b64decode(answer["data"]))}
    return _ordered(answer)


def _read(data: bytes) -> Any:
    """JSON is compared by what it says; other bytes by what they are."""
    try:
        return json.loads(data, parse_float=lambda word: repr(float(word)))
    except ValueError:
        return data.hex()


def _ordered(node: Any) -> Any:
    """Entries of maps in one order, since Java's have none; floats as Python prints them."""
    if isinstance(node, dict):
        return {key: _ordered(one) for key, one in node.items()}
    if isinstance(node, list) and len(node) == 2 and node[0] == "map":
        return ["map", sorted((_ordered(one) for one in node[1]), key=json.dumps)]
    if isinstance(node, list) and len(node) == 2 and node[0] == "float":
        return ["float", repr(float(node[1].replace("Infinity", "inf")))]
    return [_ordered(one) for one in node] if isinstance(node, list) else node


def _transformed(case: Case) -> Any:
    kind = load_plugin(PluginKind.TRANSFORM, case["class"])
    made = kind(kind.config_def().parse(case["config"]))
    return {"record": record_node(made.apply(record_of(case["record"])))}


def _tested(case: Case) -> Any:
    kind = load_plugin(PluginKind.PREDICATE, case["class"])
    made = kind(kind.config_def().parse(case["config"]))
    return {"holds": made.test(record_of(case["record"]))}


def _written(case: Case) -> Any:
    schema = schema_of(case["schema"])
    value = value_of(case["value"], schema)
    if case["kind"] == "header_from":
        headers = load_plugin(PluginKind.HEADER_CONVERTER, case["class"])(case["config"])
        data = headers.from_connect_header("t", "h", schema, value)
    else:
        made = load_plugin(PluginKind.CONVERTER, case["class"])(case["config"], is_key=False)
        data = made.from_connect("t", schema, value)
    return {"data": None if data is None else base64.b64encode(data).decode()}


def _read_back(case: Case) -> Any:
    data = base64.b64decode(case["data"])
    if case["kind"] == "header_to":
        headers = load_plugin(PluginKind.HEADER_CONVERTER, case["class"])(case["config"])
        schema, value = headers.to_connect_header("t", "h", data)
    else:
        made = load_plugin(PluginKind.CONVERTER, case["class"])(case["config"], is_key=False)
        schema, value = made.to_connect("t", data)
    return {"schema": schema_node(schema), "value": value_node(value)}


_SHOWN = ("name", "type", "required", "default_value", "importance", "group", "width")


def _defined(case: Case) -> Any:
    documents = _definition(case).documents()
    shown = (*_SHOWN, "display_name")
    keys = [{name: one[name] for name in shown} for one in documents]
    for key, one in zip(keys, documents, strict=True):
        key["order"] = one["order_in_group"]  # As the definition calls it; documents say more.
    return {"keys": keys}


def _validated(case: Case) -> Any:
    found = _definition(case).validate(case["config"]).errors()
    return {"errors": {name: list(words) for name, words in found.items()}}


def _definition(case: Case) -> ConfigDef:
    kind = next(kind for kind, name in PLUGINS if name == case["class"])
    found: ConfigDef = load_plugin(kind, case["class"]).config_def()
    return found


_ANSWERS: dict[str, Callable[[Case], Any]] = {
    "transform": _transformed,
    "predicate": _tested,
    "from": _written,
    "header_from": _written,
    "to": _read_back,
    "header_to": _read_back,
    "definition": _defined,
    "validate": _validated,
}
