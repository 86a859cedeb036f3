"""Documents of version 2: every one is understood, or refused with a sentence; none is a defect."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.http.errors import HttpError
from penstock.rest.errors import UnprocessableRequest
from penstock.rest.payloads.formats import EmbeddedFormat
from penstock.rest.v2 import requests
from penstock.schemas.lookup import SchemaKind

WORDS = [
    "records", "key_schema", "value_schema_id", "value_schema_references", "name", "id", "format",
    "auto.offset.reset", "auto.commit.enable", "fetch.min.bytes", "consumer.request.timeout.ms",
    "topics", "topic_pattern", "partitions", "offsets", "topic", "partition", "offset", "metadata",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=10,
)
PARSERS = [
    requests.produce_request,
    requests.instance_request,
    requests.subscription_request,
    requests.partition_list,
    requests.offset_list,
    requests.record_partition,
]


@pytest.mark.parametrize("parse", PARSERS)
@given(document=st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), VALUES, max_size=5))
def test_whatever_is_sent_is_taken_or_refused(parse: Any, document: dict[str, Any]) -> None:
    try:
        parse(document)
    except HttpError as error:
        assert error.answer_status == 422
        assert str(error)


def test_a_consumer_is_as_it_is_wished_for() -> None:
    document = {
        "name": "me",
        "format": "avro",
        "auto.offset.reset": "earliest",
        "auto.commit.enable": "False",
        "fetch.min.bytes": "1000",
        "consumer.request.timeout.ms": 1500,
    }
    assert requests.instance_request(document) == requests.InstanceRequest(
        name="me",
        format=EmbeddedFormat.AVRO,
        offset_reset="earliest",
        auto_commit=False,
        fetch_min_bytes=1000,
        timeout_s=1.5,
    )
    assert requests.instance_request({}) == requests.InstanceRequest()
    older = requests.instance_request({"id": "a", "name": "b", "requestWaitMs": 5})
    assert (older.name, older.timeout_s) == ("a", 0.005)


def test_an_id_counts_before_a_text() -> None:
    sent = requests.produce_request(
        {"records": [{}], "value_schema": '"int"', "value_schema_id": 7}
    ).value_schema
    choice = sent.choice("t", EmbeddedFormat.AVRO, is_key=False)
    assert (choice.schema_id, choice.text, choice.kind) == (7, None, SchemaKind.AVRO)


def test_offsets_and_partitions_are_read() -> None:
    one = {"topic": "t", "partition": 1}
    assert requests.partition_list({"partitions": [one]}) == [TopicPartition("t", 1)]
    found = requests.offset_list({"offsets": [one | {"offset": 5, "metadata": "m"}]})
    assert found == {TopicPartition("t", 1): OffsetAndMetadata(5, "m")}


def test_a_field_with_a_slip_in_it_is_told() -> None:
    with pytest.raises(UnprocessableRequest, match="Unrecognized field: fromat"):
        requests.instance_request({"fromat": "json"})


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12", 12), ("-1", None), ("x", None), ("", None), ("²", None), ("9" * 30, None)],
)
def test_a_path_names_a_partition_or_none(text: str, number: int | None) -> None:
    assert requests.path_number(text) == number
