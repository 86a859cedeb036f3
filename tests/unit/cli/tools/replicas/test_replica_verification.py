"""kafka-replica-verification: replicas compared batch by batch."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.tools.replicas.replica_verification import Comparison, Lag, lag_text
from penstock.client.operations.replica_records import ReplicaRecords
from penstock.client.values import TopicPartition
from penstock.records.batch import Record, build_batch

AT = TopicPartition("t", 0)


def batch(offset: int, *values: bytes) -> bytes:
    records = [Record(offset + number, 1, None, value, ()) for number, value in enumerate(values)]
    return bytes(build_batch(records, base_offset=offset))


def held(data: bytes, high_watermark: int) -> dict[TopicPartition, ReplicaRecords]:
    return {AT: ReplicaRecords(records=memoryview(data), high_watermark=high_watermark)}


def comparison(offset: int = 0) -> Comparison:
    return Comparison({AT: [0, 1, 2]}, {AT: offset})


def test_equal_replicas_are_gone_through_to_the_high_watermark() -> None:
    one = comparison()
    data = batch(0, b"a", b"b") + batch(2, b"c") + batch(3, b"d")
    assert list(one.take({0: held(data, 3), 1: held(data, 3), 2: held(data, 3)})) == []
    assert one.wanted() == {broker: {AT: 3} for broker in range(3)}
    assert one.worst() == Lag(AT, 0, 3, 1)


def test_a_replica_that_lacks_records_makes_lag() -> None:
    one = comparison()
    first, rest = batch(0, b"a"), batch(1, b"b")
    found = {0: held(first + rest, 2), 1: held(first, 2), 2: held(first + rest[:-1], 2)}
    assert list(one.take(found)) == []
    assert one.worst() == Lag(AT, 1, 1, 1)


def test_a_broker_that_is_gone_makes_lag_and_no_difference() -> None:
    one = comparison()
    data = batch(0, b"a")
    assert list(one.take({0: held(data, 1), 2: held(data, 1)})) == []
    assert one.worst() == Lag(AT, 1, 0, 1)


def test_other_bytes_are_told() -> None:
    one = comparison()
    good, bad = batch(0, b"a"), batch(0, b"x")
    told = list(one.take({0: held(good, 1), 1: held(bad, 1), 2: held(good, 1)}))
    assert len(told) == one.differences == 1
    assert told[0].startswith("partition t-0 has unmatched checksum at offset 0; replica 0's")
    assert "replica 1's checksum" in told[0]
    assert not one.has_lost_step


def test_batches_that_end_elsewhere_end_the_comparison() -> None:
    one = comparison()
    a, b = batch(0, b"a", b"b"), batch(0, b"a")
    told = list(one.take({0: held(a, 9), 1: held(b, 9), 2: held(a, 9)}))
    assert told == ["partition t-0: replica 0's offset 1 doesn't match replica 1's offset 0"]
    assert one.has_lost_step


@given(st.lists(st.integers(0, 400), min_size=3, max_size=3))
def test_any_cut_of_equal_replicas_is_no_difference(cuts: list[int]) -> None:
    data = b"".join(batch(number, b"v%d" % number) for number in range(5))
    one = comparison()
    found = {broker: held(data[:cut], 5) for broker, cut in enumerate(cuts)}
    assert list(one.take(found)) == []
    assert one.worst().offset == min(min(cuts) // len(batch(0, b"v0")), 5)


def test_the_line_of_an_interval() -> None:
    worst = Lag(TopicPartition("my-topic", 12), 0, 197, 13)
    assert lag_text(worst, is_old=True) == (
        "max lag is 0 for partition [my-topic,12] at offset 197 among 13 partitions"
    )
    assert lag_text(worst, is_old=False) == (
        "max lag is 0 for partition my-topic-12 at offset 197 among 13 partitions"
    )
