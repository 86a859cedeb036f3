"""ReplicaEnds: how far logs reach, told only for the very topic that was asked for."""

from typing import Any

from penstock.errors import ErrorCode
from penstock.protocol.messages.replica_ends import AskedTopic, ReplicaEndsRequest


def test_a_log_tells_the_epoch_of_its_last_record_and_its_end(served: Any) -> None:
    served.create("t", 2)
    served.append("t", 1, 2)
    topic_id = served.broker.image.topics["t"].topic_id
    asked = [
        AskedTopic(name="t", topic_id=topic_id, partitions=[0, 1, 5]),
        AskedTopic(name="t", topic_id=b"x" * 16, partitions=[0]),
    ]
    told, other = served.ask(ReplicaEndsRequest(topics=asked), 0).topics
    ends = [(e.error_code, e.latest_epoch, e.log_end_offset) for e in told.partitions]
    assert ends == [
        (ErrorCode.NONE, 0, 2),
        (ErrorCode.NONE, -1, 0),
        (ErrorCode.REPLICA_NOT_AVAILABLE, -1, -1),
    ]
    assert [e.error_code for e in other.partitions] == [ErrorCode.INCONSISTENT_TOPIC_ID]
