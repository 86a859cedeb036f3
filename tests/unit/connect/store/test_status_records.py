"""Records of the status topic, as an Apache worker of release 4.3.1 wrote them."""

import pytest

from penstock.connect.store.json_text import DamagedEntry
from penstock.connect.store.status_records import (
    RunState,
    RunStatus,
    StatusSet,
    TaskId,
    TopicUsed,
    decode_status,
    encode_status,
    encode_topic,
)

_STATUS = RunStatus(
    state=RunState.RUNNING, worker_id="127.0.0.1:8083", generation=3, version="4.3.1"
)


def test_the_bytes_are_those_of_apaches_worker() -> None:
    value = (
        b'{"state":"RUNNING","trace":null,"worker_id":"127.0.0.1:8083","generation":3,'
        b'"version":"4.3.1"}'
    )
    assert encode_status(TaskId("src", 0), _STATUS) == (b"status-task-src-0", value)
    assert encode_status(TaskId("src"), _STATUS) == (b"status-connector-src", value)
    used = TopicUsed(connector="src", topic="lines", task=0, discovered_ms=5)
    assert encode_topic(used) == (
        b"status-topic-lines:connector-src",
        b'{"topic":{"name":"lines","connector":"src","task":0,"discoverTimestamp":5}}',
    )


@pytest.mark.parametrize("of", [TaskId("a-b"), TaskId("a-1", 7), TaskId("x:connector-y", 0)])
def test_what_is_written_is_read(of: TaskId) -> None:
    assert decode_status(*encode_status(of, _STATUS)) == StatusSet(id=of, status=_STATUS)
    assert decode_status(*encode_status(of, None)) == StatusSet(id=of, status=None)
    used = TopicUsed(connector=of.connector, topic="t.x", task=2, discovered_ms=9)
    assert decode_status(*encode_topic(used)) == used


def test_a_damaged_record_is_told() -> None:
    for key, value in ((b"status-task-x", b"{}"), (b"status-connector-x", b'{"state":"ODD"}')):
        with pytest.raises(DamagedEntry):
            decode_status(key, value)
