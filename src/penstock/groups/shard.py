"""One partition of `__consumer_offsets` as a machine: all its groups and all their offsets.

A shard is the state of one partition at one leader epoch. It is driven from one thread: a request
or a timer comes in, records go to the journal, answers go to whoever waits. What the log does not
hold (who waits, sessions, half a rebalance) is lost when the shard is thrown away, and everything
else is found again by replaying the log: `replay` for each record, then `loaded`.

Rules that every kind of group keeps:

- *Write, then believe.* Decide first, `shard.write` the records, change state after. A write that
  fails raises the error for the client, and state is as it was.
- *Answers may wait.* The coordinator holds every answer back until the high watermark has passed
  all that this shard wrote before it, so nothing here needs to know about replication.
- *No time of its own.* `around.clock` and `timers` are the only clocks; timers are named
  `(group_id, what, ...)` so that a group's timers can be dropped together.

Kinds of groups share one name space: `groups[group_id]` is of kind "classic" (classic_group.py),
"consumer" (KIP-848, consumer_group*.py) or later "share". A kind brings

- an implementation of `Group` (group.py), which also answers the four classic requests;
- a `Family`: the record types it stores, and `replay` of such a record. Register it in the
  `families` given to the shard; each is called once per shard to make the kind's own room;
- its own verbs. The consumer kind's are called as `shard.family(CONSUMER).heartbeat(...)`: they
  look into `shard.groups`, write with `shard.write`, and put new groups in with `shard.place`.

Conversion is replacement: `shard.place(group)` puts another object under the same group id. Up
(classic to consumer): read `members`, `generation`, `protocol_type` of the ClassicGroup; write its
`tombstones()` and the new kind's records in one batch; `place` the new group, which calls
`removed(REBALANCE_IN_PROGRESS)` on the old one so that its waiting members rejoin. Down (consumer
to classic): make a `ClassicGroup.of_members(...)`; write the old kind's tombstones and the new
`ClassicGroup.record()` in one batch; `place` it and call its `loaded()`, which sets its timers.
Offsets are by group id and are not touched by a conversion.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from penstock.errors import ErrorCode, GroupIdNotFound
from penstock.groups.group import Group
from penstock.groups.surroundings import NO_PRODUCER, KeyValue, Surroundings
from penstock.groups.timers import Timers


class Family(Protocol):
    """A kind of group within one shard: what it stores, and how that is read back."""

    @property
    def kind(self) -> str: ...

    @property
    def record_types(self) -> frozenset[int]:
        """The types of records, the first two bytes of their keys, that only this kind writes."""
        ...

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        """Take in a record of the log; raises MalformedMessage for what cannot be read."""
        ...


class Shard:
    """All groups of one partition, while this broker leads it."""

    def __init__(
        self, around: Surroundings, families: Iterable[Callable[["Shard"], Family]] = ()
    ) -> None:
        self.around = around
        self.timers = Timers(around.clock.elapsed_ms)
        self.groups: dict[str, Group] = {}
        self._families = {family.kind: family for family in (make(self) for make in families)}

    def family(self, kind: str) -> Family:
        return self._families[kind]

    def group(self, group_id: str) -> Group:
        found = self.groups.get(group_id)
        if found is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        return found

    def place(self, group: Group) -> None:
        """Put a group in, in place of any other kind of group of that id."""
        replaced = self.groups.get(group.group_id)
        if replaced is not None and replaced is not group:
            replaced.removed(ErrorCode.REBALANCE_IN_PROGRESS)
        self.groups[group.group_id] = group

    def write(
        self,
        records: Sequence[KeyValue],
        *,
        producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_PRODUCER,
    ) -> int:
        """Bring records into the log, all or none; the offset of the first."""
        return self.around.journal.write(
            records, producer_id=producer_id, producer_epoch=producer_epoch
        )
