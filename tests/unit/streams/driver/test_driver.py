"""The test driver as its users see it: records in, records out, stores, clocks."""

from typing import Any

import pytest

from penstock.streams import (
    BYTES,
    LONG,
    STRING,
    JoinWindows,
    Processor,
    ProcessorContext,
    SerdeError,
    SessionWindows,
    SlidingWindows,
    Stamped,
    StreamRecord,
    StreamsBuilder,
    StreamsTopology,
    TestDriver,
    TimeWindow,
    TimeWindows,
    Windowed,
)
from penstock.streams.steps.suppress import BufferFull


def word_count() -> StreamsTopology:
    builder = StreamsBuilder(value=STRING)
    words = builder.stream("lines").flat_map_values(str.split).group_by(lambda key, word: word)
    words.count(store="counts").to_stream().to("counts-out", value=LONG)
    return builder.build()


def test_words_are_counted() -> None:
    with TestDriver(word_count()) as driver:
        driver.pipe_input("lines", None, "all streams lead", 5)
        driver.pipe_input("lines", None, "all", 3)
        assert driver.read_output("counts-out") == StreamRecord(key="all", value=1, timestamp_ms=5)
        assert [(r.key, r.value) for r in driver.read_all("counts-out")] == [
            ("streams", 1),
            ("lead", 1),
            ("all", 2),
        ]
        assert driver.read_output("counts-out") is None
        assert driver.stream_time_ms == 5


def test_a_store_of_rows_is_read_by_key_by_range_and_whole() -> None:
    driver = TestDriver(word_count())
    driver.pipe_input("lines", None, "b a c a", 7)
    store = driver.store("counts")
    assert store.get("a") == 2
    assert store.get_stamped("a") == Stamped(2, 7)
    assert store.get("d") is None
    assert store.all() == [("a", 2), ("b", 1), ("c", 1)]
    assert store.range("b", "c") == [("b", 1), ("c", 1)]
    assert store.range(None, "a") == [("a", 2)]
    with pytest.raises(TypeError, match="holds rows, not windows"):
        store.fetch("a", 0, 9)


def test_a_store_of_windows_is_read_by_time_and_forgets() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of(10, grace_ms=5)
    builder.stream("in").group_by_key().windowed_by(windows).count(store="windows")
    driver = TestDriver(builder.build())
    for at_ms in (1, 2, 12):
        driver.pipe_input("in", "k", "v", at_ms)
    store = driver.store("windows")
    assert store.fetch("k", 0, 100) == [(TimeWindow(0, 10), 2), (TimeWindow(10, 20), 1)]
    assert store.fetch("k", 1, 100) == [(TimeWindow(10, 20), 1)]
    assert store.all()[0] == (Windowed("k", TimeWindow(0, 10)), 2)
    driver.pipe_input("in", "other", "v", 20)
    assert store.fetch("k", 0, 100) == [(TimeWindow(10, 20), 1)]


def test_a_store_of_sessions_is_read_by_the_times_they_touch() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by_session(SessionWindows.of(5, grace_ms=50)).count(store="sessions")
    driver = TestDriver(builder.build())
    for at_ms in (1, 4, 20):
        driver.pipe_input("in", "k", "v", at_ms)
    store = driver.store("sessions")
    assert store.fetch("k", 0, 10) == [(TimeWindow(1, 4), 2)]
    assert store.fetch("k", 4, 20) == [(TimeWindow(1, 4), 2), (TimeWindow(20, 20), 1)]


def test_a_store_of_sliding_windows_is_read_by_their_starts() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(SlidingWindows.of(5, grace_ms=50)).count(store="sliding")
    driver = TestDriver(builder.build())
    for at_ms in (10, 12):
        driver.pipe_input("in", "k", "v", at_ms)
    assert driver.store("sliding").fetch("k", 0, 100) == [
        (TimeWindow(5, 10), 1),
        (TimeWindow(7, 12), 2),
        (TimeWindow(11, 16), 1),
    ]


def test_what_is_not_there_is_refused_by_name() -> None:
    driver = TestDriver(word_count())
    with pytest.raises(KeyError, match="Unknown topic: nowhere"):
        driver.pipe_input("nowhere", None, "x", 0)
    with pytest.raises(KeyError, match="no store 'sums'"):
        driver.store("sums")


def test_a_record_before_the_epoch_is_refused_as_in_a_stage() -> None:
    driver = TestDriver(word_count())
    with pytest.raises(SerdeError, match="timestamp of a record, -1, is negative"):
        driver.pipe_input("lines", None, "word", -1)
    assert driver.read_all("counts-out") == []
    assert driver.stream_time_ms == -1


def test_records_go_through_the_serdes_of_their_topics() -> None:
    driver = TestDriver(word_count())
    with pytest.raises(SerdeError, match="string serde"):
        driver.pipe_input("lines", None, 5, 0)


def test_a_full_buffer_that_may_not_emit_stops_the_topology() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in")
    rows.suppress_until_time_limit(99, records_max=1, emits_when_full=False).to_stream().to("out")
    driver = TestDriver(builder.build())
    driver.pipe_input("in", "a", 1, 0)
    with pytest.raises(BufferFull):
        driver.pipe_input("in", "b", 1, 0)


class Ticking(Processor):
    """Forwards the time at every punctuation, and counts its records in a store."""

    closed: list[str] = []  # noqa: RUF012

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule(10, "wall", self.tick)

    def tick(self, now_ms: int) -> None:
        count = self.context.store("seen").get("all")
        self.context.forward(StreamRecord(key="tick", value=count, timestamp_ms=now_ms))

    def process(self, record: StreamRecord) -> None:
        store = self.context.store("seen")
        store.put("all", (store.get("all") or 0) + 1)

    def close(self) -> None:
        self.closed.append("closed")


def test_a_processor_ticks_with_the_wall_clock_and_keeps_a_store() -> None:
    builder = StreamsBuilder().add_state_store("seen")
    builder.stream("in").process(Ticking, "seen").to("out")
    with TestDriver(builder.build(), 100) as driver:
        driver.pipe_input("in", "k", "v", 0)
        driver.pipe_input("in", "k", "v", 0)
        driver.advance_wall_clock(9)
        assert driver.read_all("out") == []
        driver.advance_wall_clock(1)
        assert driver.read_all("out") == [StreamRecord(key="tick", value=2, timestamp_ms=110)]
        assert driver.store("seen").all() == [("all", 2)]
        assert driver.store("seen").get("all") == 2
    assert Ticking.closed == ["closed"]


class Curious(Processor):
    """Asks for a store it was not given."""

    def init(self, context: ProcessorContext) -> None:
        context.store("secret")


def test_a_processor_sees_only_its_own_stores() -> None:
    builder = StreamsBuilder().add_state_store("secret")
    builder.stream("in").process(Curious).to("out")
    with pytest.raises(KeyError, match="no access to StateStore secret"):
        TestDriver(builder.build())


def test_headers_travel_with_their_record() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(lambda value: value + 1).to("out")
    driver = TestDriver(builder.build())
    driver.pipe_input("in", "k", 1, 0, headers=(("trace", b"7"),))
    written: Any = driver.read_output("out")
    assert (written.value, written.headers) == (2, (("trace", b"7"),))


def test_an_intake_makes_records_of_what_was_read_and_where_it_lies() -> None:
    def intake(record: StreamRecord, partition: int, offset: int) -> StreamRecord:
        return record.with_value([record.value["v"], partition, offset]).at(record.value["t"])

    builder = StreamsBuilder()
    builder.stream("in", intake=intake).to("out")
    with TestDriver(builder.build()) as driver:
        driver.pipe_input("in", "k", {"v": 1, "t": 70}, 5)
        driver.pipe_input("in", "k", {"v": 2, "t": 60}, 6)
        assert [(r.value, r.timestamp_ms) for r in driver.read_all("out")] == [
            ([1, 0, 0], 70),
            ([2, 0, 1], 60),
        ]
        assert driver.stream_time_ms == 70


def test_records_go_in_and_come_out_as_bytes_where_that_is_wanted() -> None:
    builder = StreamsBuilder(value=LONG)
    builder.stream("in").map_values(lambda n: n + 1).to("out")
    with TestDriver(builder.build(), as_bytes=True) as driver:
        driver.pipe_input("in", b"k", bytes(7) + b"\x01", 5)
        assert driver.read_output("out") == StreamRecord(
            key=b"k", value=bytes(7) + b"\x02", timestamp_ms=5
        )
        with pytest.raises(SerdeError):
            driver.pipe_input("in", b"k", b"short", 6)


def test_a_record_is_restamped_unless_there_is_no_time() -> None:
    builder = StreamsBuilder()
    builder.stream("in").restamp(lambda key, value: value).to("out")
    with TestDriver(builder.build()) as driver:
        driver.pipe_input("in", "k", 70, 5)
        driver.pipe_input("in", "k", None, 6)
        assert [r.timestamp_ms for r in driver.read_all("out")] == [70, 6]


def test_a_record_whose_intake_gives_it_no_time_is_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("in", intake=lambda record, partition, offset: record.at(-7)).to("out")
    with pytest.raises(SerdeError, match="the time that its intake gave it, -7, is negative"):
        TestDriver(builder.build()).pipe_input("in", "k", "v", 5)


class Backdating(Processor):
    """Sends records from before the epoch."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: StreamRecord) -> None:
        self.context.forward(record.at(-1))


def test_a_processor_cannot_send_from_before_the_epoch() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Backdating, name="back").to("out")
    with pytest.raises(ValueError, match="back sends a record of the time -1"):
        TestDriver(builder.build()).pipe_input("in", "k", "v", 5)


def test_the_driver_tells_what_was_written_and_what_can_be_looked_into() -> None:
    driver = TestDriver(word_count())
    assert driver.produced_topic_names() == set()
    driver.pipe_input("lines", None, "b ab a", 7)
    assert driver.produced_topic_names() == {"counts-repartition", "counts-out"}
    assert driver.store_names == ["counts"]
    assert driver.store("counts").prefix_scan("a") == [("a", 1), ("ab", 1)]
    assert driver.store("counts").prefix_scan(b"ab", BYTES) == [("ab", 1)]
    with pytest.raises(KeyError, match="Unknown topic: count-out; nothing writes to it"):
        driver.read_all("count-out")
    with pytest.raises(TypeError, match=r"takes what build\(\) returns"):
        TestDriver(StreamsBuilder())  # type: ignore[arg-type]


class Ticking3(Processor):
    """Ticks with the wall clock, three times."""

    def init(self, context: ProcessorContext) -> None:
        self.context, self.left = context, 3
        self.ticking = context.schedule(10, "wall", self.tick)

    def tick(self, now_ms: int) -> None:
        self.context.forward(StreamRecord(key="tick", value=self.left, timestamp_ms=now_ms))
        self.left -= 1
        if not self.left:
            self.ticking.cancel()


def test_a_cancelled_punctuator_is_called_no_more() -> None:
    builder = StreamsBuilder()
    builder.stream("in").process(Ticking3).to("out")
    driver = TestDriver(builder.build())
    for _ in range(6):
        driver.advance_wall_clock(10)
    assert [record.value for record in driver.read_all("out")] == [3, 2, 1]


def test_tables_of_windows_are_joined() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.of(10)
    one, two = (builder.stream(t).group_by_key().windowed_by(windows).count() for t in "ab")
    one.join(two, lambda a, b: [a, b]).to_stream().to("out")
    driver = TestDriver(builder.build())
    for topic, at_ms in (("a", 1), ("b", 2), ("b", 3), ("b", 12)):
        driver.pipe_input(topic, "k", 0, at_ms)
    found = [(r.key.window.start_ms, r.value, r.timestamp_ms) for r in driver.read_all("out")]
    assert found == [(0, [1, 1], 2), (0, [1, 2], 3)]


def test_what_was_held_back_has_the_headers_of_its_own_record() -> None:
    builder = StreamsBuilder()
    builder.table("in").suppress_until_time_limit(5).to_stream().to("out")
    driver = TestDriver(builder.build())
    driver.pipe_input("in", "k", 1, 0, (("trace", b"1"),))
    driver.pipe_input("in", "other", 1, 9, (("trace", b"2"),))
    assert [record.headers for record in driver.read_all("out")] == [(("trace", b"1"),)]


def test_a_lonely_record_of_a_join_has_the_headers_of_what_ended_its_waiting() -> None:
    builder = StreamsBuilder()
    near = JoinWindows.of(5)
    builder.stream("a").left_join(builder.stream("b"), lambda a, b: [a, b], near).to("out")
    driver = TestDriver(builder.build())
    driver.pipe_input("a", "k", 1, 0, (("trace", b"1"),))
    driver.pipe_input("a", "other", 1, 9, (("trace", b"2"),))
    assert [(r.value, r.headers) for r in driver.read_all("out")] == [
        ([1, None], (("trace", b"2"),)),
    ]
