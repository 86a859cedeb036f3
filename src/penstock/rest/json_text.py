"""JSON as the proxy reads and writes it: by orjson, since every record passes through here.

Pure. orjson takes no number that it cannot keep (NaN), no half of a character, and no document that
nests deeper than 1024 levels; all of these are bad input and told as such.
"""

from typing import Any

import orjson


def loads(text: bytes | bytearray | memoryview | str) -> Any:
    """A document; ValueError tells what is wrong with it."""
    return orjson.loads(text)


def dumps(value: object) -> bytes:
    """A document in as few bytes as it takes."""
    return orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME)
