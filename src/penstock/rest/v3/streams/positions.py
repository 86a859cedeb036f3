"""Where a stream is: for each partition the offset of the next record, as text `0-124,1-57`.

Pure. It is the id of events, so a browser sends it back by itself when it connects again.
"""

from collections.abc import Mapping
from typing import TypeAlias

Positions: TypeAlias = Mapping[int, int]

_PARTITIONS_MAX = 10_000
_NUMBER_LENGTH_MAX = 19


def positions_text(positions: Positions) -> str:
    """In the order of the partitions."""
    return ",".join(f"{partition}-{positions[partition]}" for partition in sorted(positions))


def parse_positions(text: str) -> dict[int, int] | None:
    """The positions in a text; None: it is none."""
    pairs = text.strip().split(",", _PARTITIONS_MAX)
    found: dict[int, int] = {}
    for pair in pairs:
        partition, dash, offset = pair.strip().partition("-")
        if not dash or not (_is_number(partition) and _is_number(offset)):
            return None
        found[int(partition)] = int(offset)
    return found if len(found) == len(pairs) <= _PARTITIONS_MAX else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _NUMBER_LENGTH_MAX
