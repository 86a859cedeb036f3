"""What the status topic says, all of it: how each connector and task is, and the topics in use."""

from dataclasses import dataclass, field

from penstock.connect.store.status_records import (
    RunState,
    RunStatus,
    StatusChange,
    StatusSet,
    TaskId,
    TopicUsed,
)


@dataclass(slots=True)
class StatusState:
    """Grows by `apply`."""

    statuses: dict[TaskId, RunStatus] = field(default_factory=dict)
    topics: dict[str, dict[str, TopicUsed]] = field(default_factory=dict)  # By connector and name.

    def apply(self, change: StatusChange) -> None:
        """Take in one record."""
        match change:
            case StatusSet(id=of, status=status):
                if status is None or status.state is RunState.DESTROYED:
                    self.statuses.pop(of, None)
                else:
                    self.statuses[of] = status
            case TopicUsed(discovered_ms=None):
                self.topics.get(change.connector, {}).pop(change.topic, None)
            case TopicUsed():
                self.topics.setdefault(change.connector, {})[change.topic] = change

    def of_connector(self, name: str) -> list[TaskId]:
        """The connector and its tasks, as far as there are statuses of them."""
        found = [of for of in self.statuses if of.connector == name]
        return sorted(found, key=lambda of: -1 if of.task is None else of.task)

    def topics_of(self, name: str) -> list[str]:
        """The topics that a connector uses."""
        return sorted(self.topics.get(name, ()))
