"""What a worker does next."""

from penstock.connect.group.place import ALONE, GroupPlace
from penstock.connect.herder.planning import (
    Action,
    DropTasks,
    PauseTask,
    RunningConnector,
    RunningTask,
    SettleConnector,
    StartConnector,
    StartTask,
    StopConnector,
    StopTask,
    configured_items,
    plan,
)
from penstock.connect.store.config_records import TargetState
from penstock.connect.store.config_state import StoredConnector
from penstock.connect.store.status_records import TaskId

CONFIG = {"x": "1"}
TASK = {"n": "0"}
ONE = TaskId("a", 0)


def stored(
    target: TargetState = TargetState.STARTED, tasks: int = 1, **more: object
) -> StoredConnector:
    return StoredConnector(
        name="a",
        config=CONFIG,
        target=target,
        tasks=(TASK,) * tasks,
        **more,  # type: ignore[arg-type]
    )


def running(target: TargetState = TargetState.STARTED, **more: object) -> RunningConnector:
    return RunningConnector(config=CONFIG, target=target, **more)  # type: ignore[arg-type]


def task(**more: object) -> RunningTask:
    return RunningTask(connector_config=CONFIG, config=TASK, **more)  # type: ignore[arg-type]


def planned(
    wanted: StoredConnector | None,
    connector: RunningConnector | None = None,
    tasks: dict[TaskId, RunningTask] | None = None,
    now_ms: int = 0,
    place: GroupPlace = ALONE,
) -> list[Action]:
    return plan(
        {} if wanted is None else {"a": wanted},
        {} if connector is None else {"a": connector},
        tasks or {},
        now_ms=now_ms,
        place=place,
    )


def test_a_new_connector_is_started_before_it_has_tasks() -> None:
    assert planned(stored(tasks=0)) == [StartConnector("a")]


def test_what_runs_as_wanted_is_left_alone() -> None:
    assert planned(stored(), running(), {ONE: task()}) == []


def test_a_missing_task_is_started() -> None:
    assert planned(stored(tasks=2), running(), {ONE: task()}) == [StartTask(TaskId("a", 1))]


def test_a_deleted_connector_and_its_tasks_end() -> None:
    assert planned(None, running(), {ONE: task()}) == [StopTask(ONE), StopConnector("a", True)]


def test_a_task_with_another_configuration_ends_before_it_starts_anew() -> None:
    other = RunningTask(connector_config=CONFIG, config={"n": "old"})
    assert planned(stored(), running(), {ONE: other}) == [StopTask(ONE)]


def test_a_changed_configuration_restarts_the_connector_and_its_tasks() -> None:
    old = RunningConnector(config={"x": "0"}, target=TargetState.STARTED)
    was = RunningTask(connector_config={"x": "0"}, config=TASK)
    assert planned(stored(), old, {ONE: was}) == [StopTask(ONE), StartConnector("a")]


def test_a_pause_is_told_to_tasks_that_live_on() -> None:
    paused = stored(TargetState.PAUSED)
    assert planned(paused, running(), {ONE: task()}) == [
        SettleConnector("a"),
        PauseTask(ONE, True),
    ]
    settled = running(TargetState.PAUSED)
    assert planned(paused, settled, {ONE: task(is_paused=True)}) == []
    assert PauseTask(ONE, False) in planned(stored(), settled, {ONE: task(is_paused=True)})


def test_a_stopped_connector_has_no_tasks() -> None:
    stopped = stored(TargetState.STOPPED)
    assert planned(stopped, running(), {ONE: task()}) == [
        StopTask(ONE),
        DropTasks("a"),
        SettleConnector("a"),
    ]
    assert planned(stored(TargetState.STOPPED, 0), running(TargetState.STOPPED)) == []


def test_what_failed_is_tried_again_when_its_pause_is_over() -> None:
    failed = {ONE: task(is_failed=True, resume_ms=1000)}
    assert planned(stored(), running(), failed, now_ms=999) == []
    assert planned(stored(), running(), failed, now_ms=1000) == [StartTask(ONE)]
    sick = running(is_failed=True, resume_ms=1000)
    assert planned(stored(tasks=0), sick, now_ms=999) == []
    assert planned(stored(tasks=0), sick, now_ms=1000) == [StartConnector("a")]


def test_what_failed_for_good_stays_failed() -> None:
    assert planned(stored(), running(), {ONE: task(is_failed=True)}, now_ms=10**15) == []


def test_tasks_of_an_inconsistent_connector_are_made_anew_and_none_is_started() -> None:
    assert planned(stored(is_consistent=False), running()) == [StartConnector("a")]


def owning(*items: TaskId) -> GroupPlace:
    return GroupPlace(owned=frozenset(items), is_leader=False)


def test_only_what_is_this_workers_is_started() -> None:
    assert planned(stored(tasks=2), place=owning(ONE)) == [StartTask(ONE)]
    assert planned(stored(tasks=2), place=owning(TaskId("a"))) == [StartConnector("a")]
    assert planned(stored(tasks=2), place=owning()) == []


def test_what_another_worker_gets_ends_here_and_is_not_deleted() -> None:
    actions = planned(stored(), running(), {ONE: task()}, place=owning())
    assert actions == [StopTask(ONE), StopConnector("a", False)]


def test_connectors_and_tasks_in_force_are_shared_out() -> None:
    assert configured_items({"a": stored(tasks=2)}) == {TaskId("a"), ONE, TaskId("a", 1)}
    assert configured_items({"a": stored(tasks=2, is_consistent=False)}) == {TaskId("a")}


def test_what_runs_with_expired_secrets_is_restarted() -> None:
    connector, expiring = running(reload_ms=5), {ONE: task(reload_ms=5)}
    assert planned(stored(), connector, expiring, now_ms=4) == []
    assert planned(stored(), connector, expiring, now_ms=5) == [StopTask(ONE), StartConnector("a")]
