"""One connection: versions are agreed on, answers are bounded, errors are sentences."""

import struct
from typing import Any

import pytest

from penstock.client.errors import BrokerUnreachableError, ClientError, KafkaTimeoutError
from penstock.client.wire.connection import BrokerConnection, parse_addresses
from penstock.errors import ConfigError, UnsupportedVersion
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataRequest, MetadataResponse


def test_a_request_goes_out_in_the_highest_version_both_speak(stub: Any) -> None:
    stub.versions[ApiKey.METADATA] = range(6)
    with BrokerConnection("127.0.0.1", stub.port) as connection:
        answer = connection.ask(MetadataRequest(topics=None), MetadataResponse)
    assert answer.cluster_id == "stub"
    assert (ApiKey.METADATA, 5) in stub.asked


def test_a_version_may_be_chosen(stub: Any) -> None:
    with BrokerConnection("127.0.0.1", stub.port) as connection:
        connection.request(MetadataRequest(topics=None), 1)
    assert (ApiKey.METADATA, 1) in stub.asked


def test_a_broker_that_knows_only_old_versions_is_asked_again(stub: Any) -> None:
    stub.versions[ApiKey.API_VERSIONS] = range(2)
    with BrokerConnection("127.0.0.1", stub.port) as connection:
        assert connection.broker_versions[ApiKey.API_VERSIONS] == range(2)
    assert stub.asked == [(ApiKey.API_VERSIONS, 4), (ApiKey.API_VERSIONS, 1)]


def test_an_api_that_the_broker_lacks_is_told_by_name(stub: Any) -> None:
    from penstock.protocol.messages.list_offsets import ListOffsetsRequest

    with (
        BrokerConnection("127.0.0.1", stub.port) as connection,
        pytest.raises(UnsupportedVersion, match="does not serve ListOffsets requests"),
    ):
        connection.request(ListOffsetsRequest())


def test_nobody_listening_is_one_clear_sentence(closed_port: int) -> None:
    with pytest.raises(BrokerUnreachableError) as caught:
        BrokerConnection("127.0.0.1", closed_port)
    assert str(caught.value) == (
        f"Connection to 127.0.0.1:{closed_port} could not be established. "
        "Is a broker running there?"
    )


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 3) + b"abc",
    ],
)
def test_a_server_that_is_no_broker_is_recognised(stub: Any, reply: bytes) -> None:
    stub.raw_reply = reply
    with pytest.raises(BrokerUnreachableError, match="does not answer as a Kafka broker"):
        BrokerConnection("127.0.0.1", stub.port, timeout_s=60)


def test_an_answer_to_another_request_is_refused(stub: Any) -> None:
    stub.raw_reply = struct.pack(">ii", 4, 12345)
    with pytest.raises(ClientError, match="cannot be read"):
        BrokerConnection("127.0.0.1", stub.port, timeout_s=60)


def test_a_truncated_answer_is_refused(stub: Any) -> None:
    stub.raw_reply = struct.pack(">iih", 6, 1, 0)
    with pytest.raises(ClientError, match="cannot be read"):
        BrokerConnection("127.0.0.1", stub.port, timeout_s=60)


def test_an_answer_beyond_the_bound_is_refused(stub: Any) -> None:
    with BrokerConnection("127.0.0.1", stub.port, response_bytes_max=1000) as connection:
        stub.raw_reply = struct.pack(">i", 1001)
        with pytest.raises(BrokerUnreachableError):
            connection.request(MetadataRequest(topics=None))


def test_silence_is_a_timeout_and_ends_the_connection(stub: Any) -> None:
    connection = BrokerConnection("127.0.0.1", stub.port)
    stub.is_silent = True
    with pytest.raises(KafkaTimeoutError, match="did not answer a Metadata request within"):
        connection.request(MetadataRequest(topics=None), timeout_s=0.05)
    with pytest.raises(BrokerUnreachableError):
        connection.request(MetadataRequest(topics=None))


def test_a_broken_connection_is_told(stub: Any) -> None:
    connection = BrokerConnection("127.0.0.1", stub.port)
    stub.answers[ApiKey.METADATA] = lambda *_: stub.drop_connections()
    with pytest.raises(BrokerUnreachableError, match="broke"):
        connection.request(MetadataRequest(topics=None))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("a:1, b:2 ,", [("a", 1), ("b", 2)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("PLAINTEXT://a:1", [("a", 1)]),
    ],
)
def test_addresses_are_read(text: str, pairs: list[tuple[str, int]]) -> None:
    assert parse_addresses(text) == pairs


@pytest.mark.parametrize("text", ["", " , ", "localhost", "localhost:", ":9092", "a:0", "a:65536"])
def test_a_bad_address_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        parse_addresses(text)
