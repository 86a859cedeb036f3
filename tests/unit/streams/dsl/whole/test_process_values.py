"""`process_values`: a processor whose records keep their keys, so nothing is repartitioned."""

import pytest

from penstock.streams import (
    STRING,
    Processor,
    ProcessorContext,
    StreamRecord,
    StreamsBuilder,
    TestDriver,
)


class Numbering(Processor):
    """Numbers the values of a key; one that is "move" goes out under another key."""

    def init(self, context: ProcessorContext) -> None:
        self.context, self.seen = context, context.store("seen")

    def process(self, record: StreamRecord) -> None:
        number = (self.seen.get(record.key) or 0) + 1
        self.seen.put(record.key, number)
        sent = record.with_value(f"{record.value}{number}")
        self.context.forward(sent.with_key("elsewhere") if record.value == "move" else sent)


def numbered() -> StreamsBuilder:
    builder = StreamsBuilder(value=STRING)
    builder.add_state_store("seen")
    stream = builder.stream("in").process_values(Numbering, "seen")
    stream.group_by_key(value=STRING).reduce(lambda one, two: two).to_stream().to("out")
    return builder


def test_values_are_processed_with_a_store_and_without_a_repartition_topic() -> None:
    topology = numbered().build()
    assert not topology.internal_topics
    assert "KSTREAM-PROCESSVALUES-0000000001 (stores: [seen])" in topology.describe()
    with TestDriver(topology) as driver:
        for key in ("a", "b", "a"):
            driver.pipe_input("in", key, "x", timestamp_ms=1)
        written = [(record.key, record.value) for record in driver.read_all("out")]
    assert written == [("a", "x1"), ("b", "x1"), ("a", "x2")]


def test_another_key_is_refused_with_both_keys() -> None:
    with (
        TestDriver(numbered().build()) as driver,
        pytest.raises(ValueError, match="sends the key 'elsewhere' for 'a': process_values keeps"),
    ):
        driver.pipe_input("in", "a", "move", timestamp_ms=1)
