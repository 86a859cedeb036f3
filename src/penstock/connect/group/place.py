"""Where a worker stands in its group: what it runs, who leads, who has what."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.connect.group.told import Held
from penstock.connect.store.status_records import TaskId


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlace:
    """Made anew with each round of the group."""

    owned: Held | None = None  # None: everything, because there is no group.
    is_leader: bool = True
    leader_url: str | None = None  # None: nobody is known to lead.
    generation: int = 0
    owners: Mapping[TaskId, str] = field(default_factory=dict)  # The leader's alone: URLs.

    def owns(self, of: TaskId) -> bool:
        """Whether this worker is to run it."""
        return self.owned is None or of in self.owned


ALONE = GroupPlace()
OUTSIDE = GroupPlace(owned=frozenset(), is_leader=False)
