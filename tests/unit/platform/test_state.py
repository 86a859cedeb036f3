"""What a tree writes of itself is what others read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.platform.state import (
    DoorState,
    ProcessIdentity,
    ProcessState,
    TreeState,
    from_json,
    to_json,
)

identities = st.builds(ProcessIdentity, pid=st.integers(1, 2**22), born=st.integers(0, 2**60))
doors = st.builds(
    DoorState,
    service=st.text(),
    address=st.text(),
    is_ready=st.booleans(),
    problem=st.none() | st.text(),
)
processes = st.builds(
    ProcessState,
    name=st.text(),
    identity=st.none() | identities,
    started_ms=st.integers(0, 2**50),
    restarts=st.integers(0, 1000),
    log=st.text(),
    last_end=st.none() | st.text(),
    doors=st.lists(doors, max_size=3).map(tuple),
)
trees = st.builds(
    TreeState,
    supervisor=identities,
    started_ms=st.integers(0, 2**50),
    is_up=st.booleans(),
    processes=st.lists(processes, max_size=3).map(tuple),
)


@given(trees)
def test_a_state_reads_back_as_it_was(state: TreeState) -> None:
    assert from_json(to_json(state)) == state


@given(trees)
def test_a_process_that_is_not_there_is_neither_ready_nor_to_be_ended(state: TreeState) -> None:
    gone = [process for process in state.processes if process.identity is None]
    assert not any(process.is_ready for process in gone)
    assert len(state.identities) == len(state.processes) - len(gone)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"supervisor": {"pid": 1}}'])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        from_json(text)
