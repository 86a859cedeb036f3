"""One flow looked after: its topics brought up to date, its tasks started and restarted.

A partition belongs to a task by its name alone, so a new topic only concerns one task, and so the
same transactional id always fences whoever copied the partition before.
"""

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from penstock.client.operations.transactions import fence_producers, list_transactions
from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.raw_cluster import whole_number
from penstock.client.wire.raw_produce import ProduceSettings
from penstock.errors import PenstockError, UnsupportedVersion
from penstock.mirror.config import Flow, MirrorConfig
from penstock.mirror.copying.copier import CopyOrder
from penstock.mirror.copying.reading import ReadSettings
from penstock.mirror.policies import runs_topic, syncs_topic
from penstock.mirror.running.hosts import RunningCopy, TaskHost
from penstock.mirror.running.task import TAKEN_OVER, CopyTask, GroupsTask, MirrorTask, opened
from penstock.mirror.topics import TopicSync
from penstock.queries.restart import pause_s
from penstock.records.topic_partition import TopicPartition

LOOK_S = 0.25
_FENCED_PAUSE_S = 5.0
_STABLE_S = 60.0  # A task that ran so long has recovered from earlier failures.

Partitions = Mapping[TopicPartition, TopicPartition]
Report = Callable[[str], None]


@dataclass(slots=True)
class KeptTask:
    """A task that is to run, and how it is doing."""

    task: MirrorTask
    running: RunningCopy | None = None
    failures: int = 0
    due_s: float = 0.0
    started_s: float = 0.0


class TaskKeeper:
    """Tasks by name: what is to run does, and what failed is started again after a pause."""

    def __init__(self, host: TaskHost, report: Report) -> None:
        self._host = host
        self._report = report
        self._kept: dict[str, KeptTask] = {}

    def keep(self, wanted: Mapping[str, MirrorTask]) -> None:
        """From now on these; tasks that are no others go on as they are."""
        for name in [name for name in self._kept if wanted.get(name) != self._kept[name].task]:
            self._cancel(self._kept.pop(name))
        for name, task in wanted.items():
            self._kept.setdefault(name, KeptTask(task))

    def look(self, now_s: float) -> None:
        """Start what is due, and note what has ended."""
        for name, one in self._kept.items():
            if one.running is not None and not one.running.is_running:
                self._note_end(name, one, now_s)
            if one.running is None and now_s >= one.due_s:
                one.running = self._host.start(name, one.task)
                one.started_s = now_s

    def end(self) -> None:
        """Stop all."""
        self.keep({})

    def _note_end(self, name: str, one: KeptTask, now_s: float) -> None:
        assert one.running is not None
        why = one.running.failure or "it ended by itself"
        one.running = None
        one.failures = 1 if now_s - one.started_s > _STABLE_S else one.failures + 1
        wait_s = restart_pause_s(one.failures, is_fenced=TAKEN_OVER in why)
        one.due_s = now_s + wait_s
        self._report(f"{name} failed: {why} It is started again in {wait_s:g} s.")

    @staticmethod
    def _cancel(one: KeptTask) -> None:
        if one.running is not None:
            one.running.cancel()


class FlowKeeper:
    """A flow in a thread of its own, so that a cluster that is away holds up no other flow."""

    def __init__(self, config: MirrorConfig, flow: Flow, host: TaskHost, report: Report) -> None:
        self._config = config
        self._flow = flow
        self._report = report
        self._tasks = TaskKeeper(host, report)
        self._failures = 0

    def run(self, stop: threading.Event) -> None:
        """Look after the flow until told to stop."""
        due_s = 0.0
        try:
            while not stop.wait(LOOK_S):
                now_s = time.monotonic()
                if now_s >= due_s:
                    due_s = time.monotonic() + self._refresh()
                self._tasks.look(now_s)
        finally:
            self._tasks.end()
            self._end_transactions()

    def _refresh(self) -> float:
        """Bring topics and tasks up to date; how long it will do."""
        flow = self._flow
        try:
            with ExitStack() as stack:
                source = opened(stack, self._config.client(flow.source, "admin"))
                target = opened(stack, self._config.client(flow.target, "admin"))
                topics = TopicSync(flow, source, target)
                topics.prepare()
                partitions = topics.refresh()
                wanted = tasks_of(self._config, flow, partitions)
                self._fence_others(target, wanted)
        except (PenstockError, OSError) as error:
            self._failures += 1
            wait_s = pause_s(self._failures)
            self._report(f"{flow.name}: {error} The next attempt is in {wait_s:g} s.")
            return wait_s
        self._failures = 0
        self._tasks.keep(wanted)
        return float("inf") if flow.refresh_topics_s is None else flow.refresh_topics_s

    def _fence_others(self, target: ClusterClient, wanted: Mapping[str, MirrorTask]) -> None:
        """Ids of an earlier division into tasks must not copy the same partitions."""
        own = {one.order.transactional_id for one in wanted.values() if isinstance(one, CopyTask)}
        beginning = self._flow.transactional_id("")
        try:
            listed = list_transactions(target)
        except UnsupportedVersion:
            return  # Before 3.0 nobody can be asked; only a change of tasks.max is unguarded then.
        others = [
            one.transactional_id
            for one in listed
            if one.transactional_id.startswith(beginning) and one.transactional_id not in own
        ]
        fence_producers(target, others)

    def _end_transactions(self) -> None:
        """What a task that was cut off left open would make the target's readers wait."""
        ids = [self._flow.transactional_id(n) for n in range(self._flow.tasks_max)]
        try:
            with ExitStack() as stack:
                target = opened(stack, self._config.client(self._flow.target, "admin"))
                fence_producers(target, ids)
        except (PenstockError, OSError) as error:
            self._report(f"{self._flow.name}: open transactions end by themselves later: {error}")


def tasks_of(config: MirrorConfig, flow: Flow, partitions: Partitions) -> dict[str, MirrorTask]:
    """The tasks of a flow by name."""
    reading = config.client(flow.source, "consumer")
    writing = config.client(flow.target, "producer")
    pairs = tuple(sorted(partitions.items()))
    tasks: dict[str, MirrorTask] = {}
    for number in range(flow.tasks_max):
        own = tuple(pair for pair in pairs if task_of(pair[0], flow.tasks_max) == number)
        if own:
            order = copy_order(flow, number, own, reading, writing)
            tasks[f"{flow.name} copy {number}"] = CopyTask(
                order=order, source=reading, target=writing
            )
    if pairs:
        tasks[f"{flow.name} groups"] = GroupsTask(
            flow=flow,
            partitions=pairs,
            source=config.client(flow.source, "admin"),
            target=config.client(flow.target, "admin"),
        )
    return tasks


def task_of(at: TopicPartition, tasks: int) -> int:
    """Which task a partition belongs to, for good."""
    return zlib.crc32(str(at).encode()) % tasks


def restart_pause_s(failures: int, *, is_fenced: bool) -> float:
    """At once the first time; two mirrors of one flow must not fence each other without end."""
    if is_fenced:
        return max(_FENCED_PAUSE_S, pause_s(failures))
    return 0.0 if failures <= 1 else pause_s(failures - 1)


def copy_order(
    flow: Flow,
    number: int,
    partitions: Iterable[tuple[TopicPartition, TopicPartition]],
    reading: Mapping[str, str],
    writing: Mapping[str, str],
) -> CopyOrder:
    """What a task copies and how, as flow and clients say."""
    other = flow.target if flow.are_syncs_on_source else flow.source
    separator = flow.policy.separator
    default = ReadSettings()
    return CopyOrder(
        flow=flow.name,
        partitions=tuple(partitions),
        transactional_id=flow.transactional_id(number),
        group=flow.positions_group,
        runs_topic=runs_topic(flow.source, separator),
        syncs_topic=syncs_topic(other, separator) if flow.emit_offset_syncs else None,
        are_syncs_on_source=flow.are_syncs_on_source,
        begins_at_end=reading.get("auto.offset.reset") == "latest",
        transaction_ms=flow.transaction_ms,
        transaction_timeout_ms=whole_number(writing, "transaction.timeout.ms", 60_000),
        reading=ReadSettings(
            read_committed=reading.get("isolation.level") != "read_uncommitted",
            max_bytes=whole_number(reading, "fetch.max.bytes", default.max_bytes),
            partition_bytes=whole_number(
                reading, "max.partition.fetch.bytes", default.partition_bytes
            ),
            max_wait_ms=whole_number(reading, "fetch.max.wait.ms", default.max_wait_ms),
        ),
        producing=ProduceSettings(
            request_bytes_max=whole_number(writing, "max.request.size", 8 * 1024 * 1024),
            delivery_timeout_ms=whole_number(writing, "delivery.timeout.ms", 120_000),
        ),
    )
