"""Of several topics, the one with the earliest head comes first; a topic keeps its order."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from penstock.streams import StreamRecord
from penstock.streams.tasks.queues import TopicQueues


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 5)), max_size=40))
def test_the_earliest_head_is_taken_and_topics_keep_their_order(
    given_records: list[tuple[str, int]],
) -> None:
    queues: TopicQueues[StreamRecord] = TopicQueues()
    waiting: dict[str, list[StreamRecord]] = defaultdict(list)
    for number, (topic, at_ms) in enumerate(given_records):
        record = StreamRecord(key=number, value=None, timestamp_ms=at_ms)
        queues.add(topic, record)
        waiting[topic].append(record)
    while (taken := queues.take()) is not None:
        topic, record = taken
        heads = [records[0].timestamp_ms for records in waiting.values() if records]
        assert record == waiting[topic].pop(0)
        assert record.timestamp_ms == min(heads)
    assert not any(waiting.values())
