"""What every language's parsed schema can do, and the JSON that two of them are written in.

Schema texts come from anyone who can reach the registry. Size and nesting are therefore bounded
before a parser sees the text: a parser that recurses would end the process, not the request.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

from penstock.schemas.compatibility.difference import Difference
from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind

TEXT_CHARS_MAX = 1_000_000
DEPTH_MAX = 100
REFERENCES_MAX = 1_000
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedText:
    """A schema that another refers to, under the name the other uses."""

    name: str
    text: str


class SchemaDefinition(Protocol):
    """A schema's text, understood."""

    @property
    def kind(self) -> SchemaKind:
        """The language."""

    def canonical(self) -> str:
        """The text as it is stored and told; texts that mean the same may still differ."""

    def normalised(self) -> str:
        """The text in which also the order of what has no order is fixed."""

    def top_level_fields(self) -> frozenset[str]:
        """The names of the outermost fields."""

    def differences(self, writer: Self) -> list[Difference]:
        """What keeps readers under this schema from reading values written under the other."""


def check_text(text: str) -> None:
    """Refuse what is too long."""
    if len(text) > TEXT_CHARS_MAX:
        raise SchemaError(
            f"a schema may have {TEXT_CHARS_MAX} characters, this one has {len(text)}"
        )


def load_json(text: str) -> Any:
    """JSON within bounds."""
    check_text(text)
    depth = 0
    for token in _STRUCTURE.finditer(text):
        mark = token.group()
        depth += (mark in "[{") - (mark in "]}")
        if depth > DEPTH_MAX:
            raise SchemaError(f"the schema is nested more than {DEPTH_MAX} levels deep")
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"this is not JSON: {error}") from None


def dump_json(value: Any) -> str:
    """JSON without spaces, as the registry stores it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def check_references(references: Sequence[NamedText]) -> None:
    """Refuse more references than any schema needs."""
    for reference in references:
        check_text(reference.text)
    if len(references) > REFERENCES_MAX:
        raise SchemaError(f"a schema may have {REFERENCES_MAX} references")


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits} is too large")
    return number
