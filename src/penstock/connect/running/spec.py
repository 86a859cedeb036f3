"""All that a task has to know, as values that can be pickled to another machine.

Secrets are not among them: a configuration carries `${file:...}` as it was written, and the task
asks its config providers itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from penstock.connect.settings import WorkerSettings
from penstock.connect.store.config_records import LogEntry


class ControlAddress(NamedTuple):
    """Where the worker listens for its tasks."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One run of one task."""

    connector: str
    task: int
    run: int  # Counts the starts of this task by this worker.
    is_source: bool
    connector_config: Mapping[str, str]
    task_config: Mapping[str, str]
    settings: WorkerSettings
    control: ControlAddress
    token: str
    is_paused: bool = False
    offsets: tuple[LogEntry, ...] = ()  # Of a standalone worker, which keeps them in a file.

    @property
    def name(self) -> str:
        """As logs and Spark's jobs name it."""
        return f"{self.connector}-{self.task}"

    @property
    def transactional_id(self) -> str:
        """Whoever has it fences its predecessors (KIP-618)."""
        return f"{self.settings.group_id}-{self.connector}-{self.task}"

    @property
    def sink_group(self) -> str:
        """The consumer group of a sink's tasks."""
        named = self.connector_config.get("consumer.override.group.id")
        return named or f"connect-{self.connector}"
