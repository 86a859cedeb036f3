"""JSON as Apache's converter writes it into Connect's topics, and reads it out of them.

The converter has schemas off. Compaction compares keys byte for byte, so spacing is part of the
format: there is none.
"""

import json
from typing import Any

from penstock.errors import PenstockError


class DamagedEntry(PenstockError):
    """A record of Connect's topics that cannot be read; it is left out and told."""


def encode(document: object) -> bytes:
    """A document without spaces, in UTF-8."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def decode(text: bytes | str) -> Any:
    """A document; DamagedEntry if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedEntry(f"the record is not JSON: {error}") from None


def decode_object(text: bytes) -> dict[str, Any]:
    """A document that is an object."""
    document = decode(text)
    if not isinstance(document, dict):
        raise DamagedEntry("the record is no JSON object")
    return document
