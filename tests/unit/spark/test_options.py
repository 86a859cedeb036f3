"""Options mean what they mean to Spark's own Kafka source, and mistakes are named."""

import pytest

from penstock.client.values import TopicPartition
from penstock.spark.options import (
    EARLIEST,
    LATEST,
    OptionError,
    ReadOptions,
    chosen_columns,
    read_options,
    write_options,
)
from penstock.spark.schema import COLUMNS, DEFAULT_COLUMNS

SERVERS = {"kafka.bootstrap.servers": "a:9092"}


def batch(**given: str) -> ReadOptions:
    return read_options({**SERVERS, "subscribe": "t", **given}, streaming=False)


def stream(**given: str) -> ReadOptions:
    return read_options({**SERVERS, "subscribe": "t", **given}, streaming=True)


def test_without_options_a_batch_reads_everything_and_a_stream_what_comes() -> None:
    assert (batch().starting.edge, batch().ending.edge) == (EARLIEST, LATEST)
    assert stream().starting.edge == LATEST
    assert stream().fail_on_data_loss
    assert stream().columns == DEFAULT_COLUMNS
    assert stream().max_trigger_delay_ms == 15 * 60_000
    assert not stream().read_committed


def test_names_of_options_have_no_case_and_client_settings_lose_their_prefix() -> None:
    options = read_options(
        {"KAFKA.bootstrap.servers": "a:1", "SUBSCRIBE": "t", "failondataloss": "FALSE"},
        streaming=True,
    )
    assert options.client_settings == {"bootstrap.servers": "a:1"}
    assert not options.fail_on_data_loss


def test_the_three_ways_to_say_what_to_read() -> None:
    assert batch(subscribe=" a , b,a ").subscription.topics == ("a", "b")
    raw = {**SERVERS, "subscribePattern": "a.*"}
    assert read_options(raw, streaming=True).subscription.pattern == "a.*"
    raw = {**SERVERS, "assign": '{"b":[1,0],"a":[2]}'}
    assert read_options(raw, streaming=True).subscription.partitions == (
        TopicPartition("a", 2),
        TopicPartition("b", 0),
        TopicPartition("b", 1),
    )


def test_a_time_for_all_comes_before_times_and_times_before_offsets() -> None:
    offsets = {"startingOffsets": '{"t":{"0":5,"1":-2}}'}
    assert batch(**offsets).starting.offsets == {
        TopicPartition("t", 0): 5,
        TopicPartition("t", 1): EARLIEST,
    }
    times = {**offsets, "startingOffsetsByTimestamp": '{"t":{"0":7}}'}
    assert batch(**times).starting.timestamps_ms == {TopicPartition("t", 0): 7}
    assert batch(**times, startingTimestamp="9").starting.timestamp_ms == 9
    assert batch(endingTimestamp="9").ending.timestamp_ms == 9


def test_columns_are_chosen_by_name_and_keep_their_order() -> None:
    assert chosen_columns({"columns": "offset, VALUE"}) == ("value", "offset")
    assert chosen_columns({"columns": "value", "includeHeaders": "true"}) == ("value", "headers")
    assert chosen_columns({"includeHeaders": "true"}) == COLUMNS


def test_ends_of_ranges_need_columns_to_be_told_in() -> None:
    assert stream(includeRangeEnds="true").include_range_ends
    with pytest.raises(OptionError, match="needs the column 'timestampType'"):
        stream(includeRangeEnds="true", columns="topic,partition,offset,value")


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("500ms", 500), ("30 s", 30_000), ("2h", 7_200_000), ("12", 12)]
)
def test_delays_have_units(text: str, milliseconds: int) -> None:
    assert stream(maxTriggerDelay=text).max_trigger_delay_ms == milliseconds


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subscribe": " , "}, "'subscribe' is empty"),
        ({"assign": '{"t":[0]}'}, "Only one of the options subscribe, subscribePattern, assign"),
        ({"startingOffset": "earliest"}, "'startingoffset' .* did you mean 'startingOffsets'"),
        ({"startingOffsets": "first"}, "'startingOffsets' cannot be 'first'"),
        ({"startingOffsets": '{"t":{"0":-3}}'}, "-3 for t-0"),
        ({"startingOffsets": '{"t":{"0":"x"}}'}, "'x' for t-0"),
        ({"startingOffsets": '{"t":5}'}, "'startingOffsets' cannot be"),
        ({"startingOffsets": "[]"}, "'startingOffsets' cannot be"),
        ({"startingTimestamp": "soon"}, "'startingTimestamp' cannot be 'soon'"),
        ({"startingTimestamp": "-5"}, "'startingTimestamp' cannot be '-5'"),
        ({"startingOffsetsByTimestampStrategy": "any"}, "must be error or latest"),
        ({"failOnDataLoss": "maybe"}, "'failOnDataLoss' must be true or false"),
        ({"maxOffsetsPerTrigger": "0"}, "'maxOffsetsPerTrigger' must be a positive number"),
        ({"maxOffsetsPerTrigger": "1.5"}, "'maxOffsetsPerTrigger' cannot be '1.5'"),
        ({"minPartitions": "-1"}, "'minPartitions' must be a positive number"),
        ({"maxRecordsPerPartition": "0"}, "'maxRecordsPerPartition' must be a positive"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "'minOffsetsPerTrigger'"),
        ({"maxTriggerDelay": "soon"}, "'maxTriggerDelay' cannot be 'soon'"),
        ({"columns": "value,size"}, "'columns' names 'size'"),
        ({"kafka.isolation.level": "none"}, "'kafka.isolation.level' must be"),
        ({"kafka.isolation.levels": "x"}, "did you mean 'kafka.isolation.level'"),
        ({"kafka.auto.offset.reset": "latest"}, "'kafka.auto.offset.reset' is not supported"),
        ({"kafka.value.deserializer": "x"}, "'kafka.value.deserializer' is not supported"),
        ({"kafka.enable.auto.commit": "true"}, "'kafka.enable.auto.commit' is not supported"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        stream(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingOffsets": "latest"}, "starting offset can't be latest"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "starting offset for t-0 can't be latest"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "ending offset for t-0 can't be earliest"),
    ],
)
def test_a_batch_has_two_ends(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        batch(**given)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_a_stream_does_not_end(name: str) -> None:
    with pytest.raises(OptionError, match=f"'{name}' is not valid in streaming queries"):
        stream(**{name: "5"})


def test_what_must_be_there_is_asked_for() -> None:
    with pytest.raises(OptionError, match="One of the options subscribe"):
        read_options(SERVERS, streaming=True)
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        read_options({"subscribe": "t"}, streaming=True)
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers"):
        write_options({"topic": "t"})


def test_sparks_own_options_pass() -> None:
    assert stream(path="x", checkpointLocation="y").subscription.topics == ("t",)
    written = write_options({**SERVERS, "topic": "t", "checkpointLocation": "y"})
    assert (written.topic, written.bootstrap) == ("t", "a:9092")


def test_an_option_of_the_other_side_is_not_known() -> None:
    with pytest.raises(OptionError, match="'subscribe' is not known to a penstock write"):
        write_options({**SERVERS, "subscribe": "t"})


def test_settings_that_say_nothing_to_this_reader_are_told_apart() -> None:
    given = {"kafka.max.poll.records": "5", "kafka.ssl.ca.location": "x", "kafka.client.id": "y"}
    assert stream(**given).without_effect == ["max.poll.records"]


def test_the_text_of_options_tells_no_password() -> None:
    secret = {"kafka.sasl.password": "told to nobody"}
    read, written = stream(**secret), write_options({**SERVERS, **secret, "topic": "t"})
    assert read.client_settings["sasl.password"] == "told to nobody"
    assert "told to nobody" not in repr(read) + repr(written)
