"""Every transaction the clients of a run began, and how each was asked to end."""

from dataclasses import dataclass, field

from tests.simulation.history import History, Place

COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"


@dataclass(kw_only=True)
class Deal:
    """One transaction."""

    name: str
    values: dict[bytes, Place] = field(default_factory=dict)
    is_commit_asked: bool = False
    told: str = UNKNOWN
    inputs: tuple[int, ...] = ()  # Offsets of the records it answers, of a worker's.
    next_input: int = -1  # The offset it commits; -1: none.

    @property
    def outcome(self) -> str:
        """What must have become of it."""
        return self.told if self.is_commit_asked else ABORTED


class Ledger:
    def __init__(self, history: History) -> None:
        self.history = history
        self.deals: list[Deal] = []
        self.by_value: dict[bytes, Deal] = {}
        # What readers of committed records got, and the first who did.
        self.seen: dict[Place, dict[int, bytes]] = {}

    def begin(self, name: str) -> Deal:
        deal = Deal(name=name)
        self.deals.append(deal)
        self.history.trace.note("begin", name)
        return deal

    def write(self, deal: Deal, value: bytes, place: Place) -> None:
        deal.values[value] = place
        self.by_value[value] = deal

    def end(self, deal: Deal, told: str) -> None:
        deal.told = told
        self.history.trace.note(told, deal.name)

    def read(self, place: Place, offset: int, value: bytes, reader: str) -> None:
        """Nothing of a transaction is seen before somebody asked for its commit."""
        self.seen.setdefault(place, {})[offset] = value
        deal = self.by_value.get(value)
        if deal is None:
            self.history.violate(f"{place} offset {offset}: {reader} read {value!r} of nobody")
        elif deal.outcome == ABORTED:
            self.history.violate(
                f"I23 {place} offset {offset}: {reader} read {value!r} of {deal.name}, which is "
                f"{'aborted' if deal.is_commit_asked else 'open or aborted'}"
            )
