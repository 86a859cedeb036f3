"""Records of the config topic, as an Apache worker of release 4.3.1 wrote them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.store.config_records import (
    ConnectorConfigured,
    LoggerSet,
    RestartWanted,
    SessionKeySet,
    TargetState,
    TargetStateSet,
    TaskConfigured,
    TasksCommitted,
    TasksFenced,
    decode_config,
    encode_connector,
    encode_fencing,
    encode_logger,
    encode_restart,
    encode_target_state,
    encode_tasks,
)
from penstock.connect.store.json_text import DamagedEntry

_NAMES = st.text(min_size=1, max_size=20)
_CONFIGS = st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=4)


def test_the_bytes_are_those_of_apaches_worker() -> None:
    config = {"connector.class": "FileStreamSource", "tasks.max": "1", "name": "src"}
    assert encode_connector("src", config) == (
        b"connector-src",
        b'{"properties":{"connector.class":"FileStreamSource","tasks.max":"1","name":"src"}}',
    )
    assert encode_tasks("src", [{"a": "b"}]) == [
        (b"task-src-0", b'{"properties":{"a":"b"}}'),
        (b"commit-src", b'{"tasks":1}'),
    ]
    stopped = encode_target_state("src", TargetState.STOPPED)
    assert stopped == (b"target-state-src", b'{"state":"PAUSED","state.v2":"STOPPED"}')
    assert encode_fencing("src", 2) == (b"tasks-fencing-src", b'{"task-count":2}')
    assert encode_logger("org.x", "INFO") == (b"logger-cluster-org.x", b'{"level":"INFO"}')


def test_records_of_apaches_worker_are_read() -> None:
    restart = decode_config(b"restart-connector-src", b'{"include-tasks":true,"only-failed":false}')
    assert restart == RestartWanted(name="src", include_tasks=True, only_failed=False)
    assert isinstance(decode_config(b"session-key", b'{"key":"x"}'), SessionKeySet)
    old = decode_config(b"target-state-src", b'{"state":"PAUSED"}')
    assert old == TargetStateSet(name="src", state=TargetState.PAUSED)
    assert decode_config(b"something-else", b"{}") is None


@given(_NAMES, _CONFIGS, st.sampled_from(TargetState), st.lists(_CONFIGS, max_size=3))
def test_what_is_written_is_read(
    name: str, config: dict[str, str], state: TargetState, tasks: list[dict[str, str]]
) -> None:
    assert decode_config(*encode_connector(name, config)) == ConnectorConfigured(
        name=name, config=config
    )
    assert decode_config(*encode_target_state(name, state)) == TargetStateSet(
        name=name, state=state
    )
    *configured, committed = [decode_config(*record) for record in encode_tasks(name, tasks)]
    assert configured == [
        TaskConfigured(name=name, task=n, config=one) for n, one in enumerate(tasks)
    ]
    assert committed == TasksCommitted(name=name, tasks=len(tasks))
    assert decode_config(*encode_fencing(name, 3)) == TasksFenced(name=name, task_count=3)
    assert decode_config(*encode_logger(name, "WARN")) == LoggerSet(logger=name, level="WARN")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"connector-x", b"{"),
        (b"connector-x", b"[]"),
        (b"connector-x", b'{"properties":1}'),
        (b"target-state-x", b'{"state":"DANCING"}'),
        (b"task-x-", b'{"properties":{}}'),
        (b"task-x", b'{"properties":{}}'),
        (b"commit-x", b'{"tasks":-1}'),
        (b"commit-x", b'{"tasks":"many"}'),
        (b"\xff", b"{}"),
    ],
)
def test_a_damaged_record_is_told(key: bytes, value: bytes) -> None:
    with pytest.raises(DamagedEntry):
        decode_config(key, value)


def test_a_wish_for_a_restart_comes_back_from_its_record() -> None:
    record = encode_restart("src", include_tasks=True, only_failed=False)
    wish = RestartWanted(name="src", include_tasks=True, only_failed=False)
    assert decode_config(*record) == wish
