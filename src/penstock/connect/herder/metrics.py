"""What a worker shows to scrapers, under the names that Connect's metrics have in Prometheus. Pure.

`kafka.connect:type=source-task-metrics` with the attribute `source-record-poll-total` becomes
`kafka_connect_source_task_metrics_source_record_poll_total`, as exporters of JMX write it.
"""

from collections.abc import Iterable, Mapping

from penstock.connect.group.place import GroupPlace
from penstock.connect.running.counts import (
    COMMITTED,
    POLLED,
    READ,
    SENT,
    WRITTEN,
    commit_percentages,
)
from penstock.connect.store.status_records import RunStatus, TaskId
from penstock.telemetry.metrics import Gauge

_SOURCE, _SINK = "source-task-metrics", "sink-task-metrics"
_TASK, _CONNECTOR = "connector-task-metrics", "connector-metrics"
_WORKER, _REBALANCE = "connect-worker-metrics", "connect-worker-rebalance-metrics"
_TOTALS = {POLLED: _SOURCE, WRITTEN: _SOURCE, READ: _SINK, SENT: _SINK}


def worker_gauges(
    counted: Mapping[TaskId, Mapping[str, int]],
    statuses: Mapping[TaskId, RunStatus | None],
    place: GroupPlace,
) -> Iterable[Gauge]:
    """All of them: the worker's, those of its connectors and tasks, its place in the group."""
    for of, status in statuses.items():
        if status is not None:
            kind = _CONNECTOR if of.task is None else _TASK
            yield _gauge(kind, "status", {**_labels(of), "status": status.state.value.lower()}, 1)
    for of, counts in counted.items():
        yield from _task_gauges(of, counts)
    yield _gauge(_WORKER, "connector-count", {}, sum(of.task is None for of in statuses))
    yield _gauge(_WORKER, "task-count", {}, len(counted))
    yield _gauge(_REBALANCE, "epoch", {}, place.generation)
    yield _gauge(_REBALANCE, "leader", {}, place.is_leader)


def _task_gauges(of: TaskId, counts: Mapping[str, int]) -> Iterable[Gauge]:
    labels = _labels(of)
    for metric, kind in _TOTALS.items():
        if metric in counts:
            yield _gauge(kind, metric, labels, counts[metric])
    good, bad = commit_percentages(counts)
    yield _gauge(_TASK, "offset-commit-success-percentage", labels, good)
    yield _gauge(_TASK, "offset-commit-failure-percentage", labels, bad)
    if READ in counts:
        yield _gauge(_SINK, "offset-commit-completion-total", labels, counts.get(COMMITTED, 0))


def _gauge(kind: str, metric: str, labels: Mapping[str, str], value: float) -> Gauge:
    return Gauge(f"kafka_connect_{kind}_{metric}".replace("-", "_"), labels, float(value))


def _labels(of: TaskId) -> dict[str, str]:
    named = {"connector": of.connector}
    return named if of.task is None else {**named, "task": str(of.task)}
