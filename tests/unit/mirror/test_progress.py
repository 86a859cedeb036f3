"""The table of a mirror's progress."""

from penstock.mirror.progress import TopicProgress, table_of


def test_every_topic_has_its_line() -> None:
    one = TopicProgress(flow="A->B", topic="orders", partitions=2, copied=120, lag=3)
    heading, line = table_of([one]).splitlines()
    assert heading.split() == ["FLOW", "TOPIC", "PARTITIONS", "COPIED", "LAG"]
    assert line.split() == ["A->B", "orders", "2", "120", "3"]
