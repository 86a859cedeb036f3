"""The order in which shards of a stream are read: a parent before its children.

A shard is closed when it is split or has grown old, and its children go on with its keys. So the
changes of a key stay in order if no child is begun before its parent is read to its end.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamShard:
    """A shard as the stream lists it."""

    id: str
    parent: str | None = None  # None: it has none. One that is no longer listed has been removed.
    last: str | None = None  # The sequence number it was closed with; None: it is open.

    @property
    def is_closed(self) -> bool:
        """Whether nothing is added to it any more."""
        return self.last is not None


def shards_to_read(
    shards: Mapping[str, StreamShard], finished: Set[str]
) -> tuple[StreamShard, ...]:
    """Those that may be read now: not finished themselves, and their parents are or are gone."""
    return tuple(
        one
        for one in shards.values()
        if one.id not in finished
        and (one.parent is None or one.parent in finished or one.parent not in shards)
    )


def ancestors(shards: Mapping[str, StreamShard], begun: Iterable[str]) -> set[str]:
    """All listed shards from which those that are begun descend: they must have been finished."""
    found: set[str] = set()
    for name in begun:
        shard = shards.get(name)
        while shard is not None and shard.parent is not None and shard.parent not in found:
            shard = shards.get(shard.parent)
            if shard is not None:
                found.add(shard.id)
    return found
