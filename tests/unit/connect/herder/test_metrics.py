"""What a worker shows to scrapers."""

from penstock.connect.group.place import GroupPlace
from penstock.connect.herder.metrics import worker_gauges
from penstock.connect.store.status_records import RunState, RunStatus, TaskId

TASK = TaskId("a", 0)
STATUS = RunStatus(state=RunState.RUNNING, worker_id="w")


def test_metrics_have_the_names_that_connects_have_in_prometheus() -> None:
    counts = {
        "sink-record-read-total": 7,
        "sink-record-send-total": 6,
        "offset-commit-success-total": 1,
    }
    place = GroupPlace(owned=frozenset({TASK}), is_leader=False, generation=3)
    told = {
        (name.removeprefix("kafka_connect_"), *labels.values()): value
        for name, labels, value in worker_gauges({TASK: counts}, {TASK: STATUS}, place)
    }
    assert told == {
        ("connector_task_metrics_status", "a", "0", "running"): 1,
        ("sink_task_metrics_sink_record_read_total", "a", "0"): 7,
        ("sink_task_metrics_sink_record_send_total", "a", "0"): 6,
        ("sink_task_metrics_offset_commit_completion_total", "a", "0"): 1,
        ("connector_task_metrics_offset_commit_success_percentage", "a", "0"): 1,
        ("connector_task_metrics_offset_commit_failure_percentage", "a", "0"): 0,
        ("connect_worker_metrics_connector_count",): 0,
        ("connect_worker_metrics_task_count",): 1,
        ("connect_worker_rebalance_metrics_epoch",): 3,
        ("connect_worker_rebalance_metrics_leader",): 0,
    }
