"""A windowed key goes where its key goes, by Kafka's own hash."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.columns.encode_partitions import murmur2 as murmur2_of_all
from penstock.streams import STRING, TimeWindow, Windowed, session_windowed, time_windowed
from penstock.streams.tasks.partitioning import murmur2, windowed_partition


@given(st.lists(st.binary(max_size=40), min_size=1))
def test_the_hash_is_the_one_that_the_sink_has(keys: list[bytes]) -> None:
    assert [murmur2(key) for key in keys] == murmur2_of_all(pa.array(keys, pa.binary())).tolist()


@given(st.text(), st.integers(0, 2**40), st.integers(1, 50))
def test_all_windows_of_a_key_lie_together(key: str, start_ms: int, count: int) -> None:
    wanted = (murmur2(key.encode()) & 0x7FFFFFFF) % count
    windowed = Windowed(key, TimeWindow(start_ms, start_ms + 10))
    for serde in (time_windowed(STRING, size_ms=10), session_windowed(STRING)):
        assert windowed_partition(serde, serde.serialize(windowed), count) == wanted
    assert windowed_partition(STRING, key.encode(), count) is None
