"""What all records of the config topic together say."""

from penstock.connect.store.config_records import (
    LogEntry,
    TargetState,
    decode_config,
    encode_connector,
    encode_fencing,
    encode_target_state,
    encode_tasks,
)
from penstock.connect.store.config_state import ConfigState


def state_of(*records: LogEntry) -> ConfigState:
    state = ConfigState()
    for record in records:
        change = decode_config(*record)
        assert change is not None
        state.apply(change)
    return state


def test_tasks_are_in_force_from_their_commit_on() -> None:
    configured, commit = encode_tasks("a", [{"n": "0"}])
    before = state_of(encode_connector("a", {"x": "y"}), configured)
    assert before.connectors["a"].tasks == ()
    after = state_of(encode_connector("a", {"x": "y"}), configured, commit)
    assert after.connectors["a"].tasks == ({"n": "0"},)


def test_a_commit_that_lacks_a_task_makes_a_connector_inconsistent_until_the_next() -> None:
    first, _, commit = encode_tasks("a", [{}, {}])
    broken = state_of(encode_connector("a", {}), first, commit)
    assert not broken.connectors["a"].is_consistent
    mended = state_of(encode_connector("a", {}), first, commit, *encode_tasks("a", [{}, {}]))
    assert mended.connectors["a"].is_consistent


def test_fewer_tasks_leave_none_of_the_old_ones() -> None:
    state = state_of(
        encode_connector("a", {}), *encode_tasks("a", [{"n": "0"}, {"n": "1"}]),
        *encode_tasks("a", [{"n": "0"}]),
    )  # fmt: skip
    assert state.connectors["a"].tasks == ({"n": "0"},)


def test_new_tasks_wait_for_a_round_of_fencing() -> None:
    records = [encode_connector("a", {}), *encode_tasks("a", [{}, {}])]
    assert state_of(*records).connectors["a"].is_fencing_due
    records.append(encode_fencing("a", 2))
    fenced = state_of(*records).connectors["a"]
    assert (fenced.is_fencing_due, fenced.fenced_count) == (False, 2)
    again = state_of(*records, *encode_tasks("a", [{}])).connectors["a"]
    assert (again.is_fencing_due, again.fenced_count) == (True, 2)


def test_a_connector_that_was_deleted_leaves_nothing_to_one_of_the_same_name() -> None:
    state = state_of(
        encode_connector("a", {}),
        encode_target_state("a", TargetState.PAUSED),
        *encode_tasks("a", [{}]),
        encode_fencing("a", 1),
        encode_connector("a", None),
        encode_connector("a", {"new": "1"}),
    )
    again = state.connectors["a"]
    assert (again.target, again.tasks, again.fenced_count) == (TargetState.STARTED, (), None)


def test_a_target_state_may_come_before_its_connector() -> None:
    state = state_of(
        encode_target_state("a", TargetState.STOPPED), encode_connector("a", {"x": "y"})
    )
    assert state.connectors["a"].target is TargetState.STOPPED
