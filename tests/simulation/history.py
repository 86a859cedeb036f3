"""What clients asked for and what they were told: the evidence the checks judge.

Every operation is noted when it begins and when it ends: `ok`, `fail` (certainly nothing
happened) or `info` (it may have). Violations found on the way are kept here too, so that one run
can tell of several.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.trace import Trace

Place = tuple[str, int]  # Topic and partition.


@dataclass(kw_only=True)
class Write:
    """One value a producer sent, once or as often as it took."""

    place: Place
    producer: str
    number: int  # Grows with every value of the producer for the place.
    value: bytes
    acks: int
    is_idempotent: bool
    outcome: str = "info"
    offset: int | None = None  # None although `ok`: the broker knew only that it has it.
    attempts: int = 0


@dataclass
class History:
    trace: Trace
    writes: dict[bytes, Write] = field(default_factory=dict)
    seen: dict[Place, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    latest: dict[Place, int] = field(default_factory=dict)  # By ListOffsets.
    trimmed: dict[Place, int] = field(default_factory=dict)  # Up to where records may be deleted.
    violations: list[str] = field(default_factory=list)
    # Topics whose acknowledged records may be lost or changed by what the run does to them.
    loose_topics: set[str] = field(default_factory=set)
    # Whether a broker leads a partition in truth, whoever knows of it.
    leads: Callable[[Place, int], bool] = lambda _place, _broker: True

    def violate(self, sentence: str) -> None:
        if len(self.violations) < 20:
            self.violations.append(sentence)
            self.trace.note("VIOLATION", sentence)

    def begin(self, write: Write) -> None:
        self.writes[write.value] = write

    def end(self, write: Write, outcome: str, offset: int | None = None) -> None:
        write.outcome, write.offset = outcome, offset
        self.trace.note("write " + outcome, write.value.decode(), offset)

    def read(self, place: Place, offset: int, value: bytes, reader: str) -> None:
        """What was read at an offset once is what stands there for ever."""
        known = self.seen[place].setdefault(offset, value)
        if known != value and place[0] not in self.loose_topics:
            self.violate(f"I10 {place} offset {offset}: {reader} read {value!r}, before {known!r}")
        elif value not in self.writes:
            self.violate(f"{place} offset {offset}: {reader} read {value!r}, which nobody wrote")

    def note_latest(self, place: Place, offset: int, *, at_least: int) -> None:
        """The end that ListOffsets tells never goes back (KIP-207)."""
        if offset < at_least and place[0] not in self.loose_topics:
            self.violate(f"I10 the end of {place} went from {at_least} back to {offset}")
        self.latest[place] = max(self.latest.get(place, 0), offset)

    def acked(self) -> list[Write]:
        return [write for write in self.writes.values() if write.outcome == "ok"]
