"""Random but repeatable messages, drawn from the field tables of their classes."""

import random
from collections.abc import Iterator
from typing import Any, TypeVar

from penstock.protocol.apis import ApiKey, request_class, response_class
from penstock.protocol.schema import Field, Message, Struct

S = TypeVar("S", bound=Struct)

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = ["", "a", "orders", "Überlänge", "topic-" * 30, "😀"]


def api_messages() -> Iterator[type[Message]]:
    """Every request and response."""
    for key in ApiKey:
        yield request_class(key)
        yield response_class(key)


def sample(kind: type[S], version: int, rng: random.Random) -> S:
    """An instance with a random value in each field that the version has."""
    fields = [(name, f) for name, f in kind.fields.items() if f.exists_in(version)]
    return kind(**{name: _value(field, version, rng) for name, field in fields})


def _value(field: Field, version: int, rng: random.Random) -> Any:
    if field.nullable_in(version) and rng.random() < 0.25:
        return None
    if field.tag is not None and rng.random() < 0.3:
        return _default(field)
    if field.kind == "array":
        counts = [0, 1, 1, 2, 3] if _is_struct(field.of) else [0, 1, 2, 5, 20, 150]
        return [_element(field.of, version, rng) for _ in range(rng.choice(counts))]
    return _element(field.of if field.kind == "struct" else field.kind, version, rng)


def _default(field: Field) -> Any:
    if field.kind == "array":
        return field.default if field.default is None else []
    if field.kind == "struct":
        assert isinstance(field.of, type)
        return None if field.default is None else field.of()
    return field.default


def _element(of: Any, version: int, rng: random.Random) -> Any:
    if _is_struct(of):
        return sample(of, version, rng)
    return _scalar(of if isinstance(of, str) else of.__name__, rng)


def _scalar(kind: str, rng: random.Random) -> Any:
    if bits := _BITS.get(kind):
        edges = [0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
        return rng.choice([*edges, rng.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))])
    if kind in ("blob", "record_set"):
        return rng.randbytes(rng.choice([0, 1, 5, 126, 127, 128, 300]))
    match kind:
        case "boolean":
            return rng.random() < 0.5
        case "uint16":
            return rng.randrange(2**16)
        case "float64":
            return rng.choice([0.0, -1.5, 1e300])
        case "uuid":
            return rng.choice([bytes(16), rng.randbytes(16)])
    assert kind == "string"
    return rng.choice([*_TEXTS, "x" * rng.choice([126, 127, 128, 200])])


def _is_struct(of: object) -> bool:
    return isinstance(of, type) and issubclass(of, Struct)
