"""Values of an Avro schema, made by chance as `arg.properties` in it say.

The properties are those of the Avro random generator: `options`, `range`, `iteration`, `regex`,
`length`, `odds`. Record n of a seed is the same whenever it is made: nothing is remembered between
records, so a generator goes on anywhere. What it does not know is refused and not left out.
"""

import random
import string
from collections.abc import Callable, Mapping
from typing import Any

from penstock.connect.connectors.datagen.patterns import text_maker
from penstock.connect.converters.avro_schemas import connect_of
from penstock.connect.values.logical import logical_of
from penstock.connect.values.schema import Schema, SchemaType
from penstock.connect.values.struct import StructValue, check_value
from penstock.errors import ConfigError

Maker = Callable[[random.Random, int], Any]  # By chance, and by the number of the record.
_ARGS = "arg.properties"
_LETTERS = string.ascii_letters + string.digits
_LENGTHS = (8, 16)
_BITS = {"int": 31, "long": 63}
_KNOWN = {
    "int": {"options", "range", "iteration"},
    "long": {"options", "range", "iteration"},
    "float": {"options", "range", "iteration"},
    "double": {"options", "range", "iteration"},
    "boolean": {"options", "odds", "iteration"},
    "string": {"options", "regex", "length"},
    "bytes": {"options", "length"},
    "fixed": set[str](),
    "enum": {"options"},
    "array": {"options", "length"},
    "map": {"length"},
    "record": set[str](),
    "null": set[str](),
}


class RecordMaker:
    """Makes the records of one schema."""

    def __init__(self, avro: Any) -> None:
        if not isinstance(avro, dict) or avro.get("type") != "record":
            raise ConfigError("the schema must be an Avro record")
        named = avro if "namespace" not in avro else _fully_named(avro)
        try:
            self.schema: Schema = connect_of(named)
            self._make = _maker(named, self.schema, {})
            check_value(self.schema, self.value(0, ""))  # Options of the wrong type, and the like.
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ConfigError(f"the Avro schema is not whole: {error!r}") from error

    def value(self, number: int, seed: str) -> StructValue:
        """Record `number` of a seed."""
        made: StructValue = self._make(random.Random(f"{seed}/{number}"), number)
        return made


def _fully_named(avro: Mapping[str, Any]) -> dict[str, Any]:
    name = str(avro["name"])
    return {**avro, "name": name if "." in name else f"{avro['namespace']}.{name}"}


def _maker(avro: Any, schema: Schema, named: dict[str, Any]) -> Maker:
    if isinstance(avro, list):
        makers = [_nothing if _is_null(one) else _maker(one, schema, named) for one in avro]
        return lambda chance, n: chance.choice(makers)(chance, n)
    if isinstance(avro, str):
        return _maker(named.get(avro, {"type": avro}), schema, named)
    if isinstance(avro["type"], dict | list):
        return _maker(avro["type"], schema, named)
    if avro["type"] in named:
        return _maker(named[avro["type"]], schema, named)
    if "name" in avro:
        named[str(avro["name"])] = avro
    return _typed(avro, schema, named)


def _typed(avro: Mapping[str, Any], schema: Schema, named: dict[str, Any]) -> Maker:
    word, args = avro["type"], avro.get(_ARGS) or {}
    unknown = sorted(set(args) - _KNOWN[word])
    if unknown:
        raise ConfigError(f"{_ARGS} of type {word} cannot have {', '.join(unknown)}")
    if "options" in args:
        return _options(args["options"], schema)
    if word == "record":
        return _record(avro, schema, named)
    if word in ("array", "map"):
        return _collection(avro, schema, named)
    plain = _PLAIN[word](avro, args)
    return lambda chance, n: logical_of(schema, plain(chance, n))


def _options(options: Any, schema: Schema) -> Maker:
    if not isinstance(options, list) or not options:
        raise ConfigError("options must be a list with something in it")
    is_float = schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64)
    made = [logical_of(schema, float(one) if is_float else one) for one in options]
    for one in made:
        check_value(schema, one)
    return lambda chance, _: chance.choice(made)


def _record(avro: Mapping[str, Any], schema: Schema, named: dict[str, Any]) -> Maker:
    makers = [
        _maker(one["type"], field.schema, named)
        for one, field in zip(avro["fields"], schema.fields, strict=True)
    ]
    return lambda chance, n: StructValue(schema, tuple([make(chance, n) for make in makers]))


def _collection(avro: Mapping[str, Any], schema: Schema, named: dict[str, Any]) -> Maker:
    assert schema.value_schema is not None
    low, high = _length(avro.get(_ARGS) or {})
    inner = avro["items"] if avro["type"] == "array" else avro["values"]
    make = _maker(inner, schema.value_schema, named)
    if avro["type"] == "array":
        return lambda chance, n: [make(chance, n) for _ in range(chance.randint(low, high))]
    return lambda chance, n: {
        _letters(chance, *_LENGTHS): make(chance, n) for _ in range(chance.randint(low, high))
    }


def _number(avro: Mapping[str, Any], args: Mapping[str, Any]) -> Maker:
    is_whole = avro["type"] in _BITS
    if "iteration" in args:
        return _iteration(args["iteration"], is_whole=is_whole)
    bound = 1 << _BITS.get(avro["type"], 31)
    limits = args.get("range", {})
    low, high = limits.get("min", -bound if is_whole else 0.0), limits.get("max", bound)
    if low >= high:
        raise ConfigError(f"the range has min {low} and max {high}")
    if is_whole:
        return lambda chance, _: chance.randrange(low, high)
    return lambda chance, _: chance.uniform(low, high)


def _iteration(args: Mapping[str, Any], *, is_whole: bool) -> Maker:
    start, restart = args["start"], args.get("restart")
    step = args.get("step", 1 if restart is None or restart > start else -1)
    initial = args.get("initial", start)
    if not step or (restart is not None and (restart - start) * step <= 0):
        raise ConfigError("the iteration never comes from its start to its restart")
    kind = int if is_whole else float
    if restart is None:
        return lambda _, n: kind(initial + n * step)
    return lambda _, n: kind(start + (initial - start + n * step) % (restart - start))


def _boolean(avro: Mapping[str, Any], args: Mapping[str, Any]) -> Maker:
    if "iteration" in args:
        first = bool(args["iteration"]["start"])
        return lambda _, n: first if n % 2 == 0 else not first
    odds = float(args.get("odds", 0.5))
    if not 0 <= odds <= 1:
        raise ConfigError(f"odds are between 0 and 1, not {odds}")
    return lambda chance, _: chance.random() < odds


def _string(avro: Mapping[str, Any], args: Mapping[str, Any]) -> Maker:
    if "regex" in args:
        made = text_maker(args["regex"])
        return lambda chance, _: made(chance)
    low, high = _length(args)
    return lambda chance, _: _letters(chance, low, high)


def _bytes(avro: Mapping[str, Any], args: Mapping[str, Any]) -> Maker:
    low, high = (avro["size"],) * 2 if avro["type"] == "fixed" else _length(args)
    return lambda chance, _: chance.randbytes(chance.randint(low, high))


def _enum(avro: Mapping[str, Any], args: Mapping[str, Any]) -> Maker:
    symbols = list(avro["symbols"])
    return lambda chance, _: chance.choice(symbols)


def _nothing(chance: random.Random, number: int) -> None:
    return None


def _is_null(avro: Any) -> bool:
    return bool(avro == "null" or avro == {"type": "null"})


_PLAIN: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Maker]] = {
    "int": _number,
    "long": _number,
    "float": _number,
    "double": _number,
    "boolean": _boolean,
    "string": _string,
    "bytes": _bytes,
    "fixed": _bytes,
    "enum": _enum,
    "null": lambda avro, args: _nothing,
}


def _length(args: Mapping[str, Any]) -> tuple[int, int]:
    """The shortest and the longest; Avro's max is one more than that."""
    length = args.get("length", _LENGTHS[0])
    if isinstance(length, int):
        low, high = length, length
    else:
        low, high = length.get("min", 0), length.get("max", _LENGTHS[1]) - 1
    if not 0 <= low <= high:
        raise ConfigError(f"the length {length} is none")
    return low, high


def _letters(chance: random.Random, low: int, high: int) -> str:
    return "".join(chance.choices(_LETTERS, k=chance.randint(low, high)))
