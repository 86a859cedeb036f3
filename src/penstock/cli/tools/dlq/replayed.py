"""Which dead letters of a partition were replayed: all below an offset, and some above it.

It is kept as a committed offset. A consumer group's offset alone could not tell that a filter left
some out, so the offsets above it stand in the commit's metadata, as ranges: `replayed 7,9-12`.
A range also covers the markers of transactions between its records.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from penstock.client.values import OffsetAndMetadata
from penstock.errors import CommandError

METADATA_BYTES_MAX = 4096  # The broker's default of offset.metadata.max.bytes.
_MARK = "replayed "
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


class Replayed(NamedTuple):
    """A set of offsets: everything below one, and ranges (first, last) above it, in order."""

    below: int = 0
    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def read(cls, committed: OffsetAndMetadata | None, *, first: int) -> "Replayed":
        """From what was committed; below `first` there are no records any more."""
        if committed is None:
            return cls(first)
        ranges = []
        text = committed.metadata or ""
        if text.startswith(_MARK):
            for word in text.removeprefix(_MARK).split(","):
                found = _RANGE.fullmatch(word)
                if found is None:
                    raise CommandError(f"The group's note {text!r} is not one of replayed records.")
                ranges.append((int(found[1]), int(found[2] or found[1])))
        return merged(max(committed.offset, first), ranges)

    def __contains__(self, offset: object) -> bool:
        assert isinstance(offset, int)
        return offset < self.below or any(a <= offset <= b for a, b in self.ranges)

    def with_ranges(self, more: Iterable[tuple[int, int]]) -> "Replayed":
        """This and more."""
        return merged(self.below, [*self.ranges, *more])

    def metadata(self) -> str:
        """What the commit says besides the offset."""
        if not self.ranges:
            return ""
        words = (str(a) if a == b else f"{a}-{b}" for a, b in self.ranges)
        text = _MARK + ",".join(words)
        if len(text) > METADATA_BYTES_MAX:
            raise CommandError(
                "Too many single records would be replayed to remember them all. Replay a range of "
                "offsets (--from-offset, --to-offset), or what comes first."
            )
        return text


def merged(below: int, ranges: Iterable[tuple[int, int]]) -> Replayed:
    """Ranges that touch each other as one; those that touch the beginning as a part of it."""
    out: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if first <= below:
            below = max(below, last + 1)
        elif out and first <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], last))
        else:
            out.append((first, last))
    return Replayed(below, tuple(out))
