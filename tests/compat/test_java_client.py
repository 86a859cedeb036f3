"""Apache Kafka's Java client against the broker: today's, and the 0.10.2 of the tutorials."""

import time
from pathlib import Path

import pytest
from tests.support.java import compiled, run_java
from tests.support.outside import needs
from tests.support.processes import ServerProcess
from tests.support.samples import stored_codec
from tests.support.wire import FETCH, RawConnection

PROGRAM = Path(__file__).parent / "java" / "RoundTrip.java"
REFUSALS = Path(__file__).parent / "java" / "Refusals.java"
COUNT, STEP_MS = 40, 1000
CURRENT, OLD = "kafka-4.3.1", "clients-0.10.2.2"
SHARE_GROUP_HEARTBEAT = 76


def round_trip(server: ServerProcess, jars: str, topic: str, codec: str, start_ms: int) -> str:
    """`codec` may be `read`: nothing is sent, what is there is read."""
    class_path = compiled(PROGRAM, needs(jars))
    work = (server.address, topic, codec, str(COUNT), str(start_ms), str(STEP_MS))
    return run_java(class_path, "RoundTrip", *work)


def expected(start_ms: int) -> str:
    lines = [f"{i}\t{start_ms + i * STEP_MS}\tkey-{i}\tvalue {i}\n" for i in range(COUNT)]
    return "".join([*lines, "tail\n", *lines[25:], "timed 30\n"])


def an_hour_ago_ms() -> int:
    return (int(time.time()) - 3600) * 1000


def create_topic(server: ServerProcess, topic: str) -> None:
    with RawConnection(server.port) as connection:
        assert connection.create_topic(topic) == 0


def skip_if_old_formats_are_dropped(server: ServerProcess) -> None:
    with RawConnection(server.port) as connection:
        if connection.api_versions().ranges[FETCH][0] > 0:
            pytest.skip("this server has dropped what 0.10.2 speaks")


@pytest.mark.kafka
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_current_client_reads_back_every_compression(server: ServerProcess, codec: str) -> None:
    start_ms = an_hour_ago_ms()
    create_topic(server, f"java-{codec}")
    assert round_trip(server, CURRENT, f"java-{codec}", codec, start_ms) == expected(start_ms)
    assert stored_codec(server.port, f"java-{codec}") == codec


@pytest.mark.kafka
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_the_client_of_the_tutorials_reads_back_every_compression(
    server: ServerProcess, codec: str
) -> None:
    skip_if_old_formats_are_dropped(server)
    start_ms = an_hour_ago_ms()
    create_topic(server, f"java-old-{codec}")
    assert round_trip(server, OLD, f"java-old-{codec}", codec, start_ms) == expected(start_ms)


@pytest.mark.kafka
def test_old_and_new_clients_read_what_the_other_wrote(server: ServerProcess) -> None:
    skip_if_old_formats_are_dropped(server)
    start_ms = an_hour_ago_ms()
    create_topic(server, "java-by-old")
    create_topic(server, "java-by-new")
    round_trip(server, OLD, "java-by-old", "gzip", start_ms)
    round_trip(server, CURRENT, "java-by-new", "snappy", start_ms)
    assert round_trip(server, CURRENT, "java-by-old", "read", start_ms) == expected(start_ms)
    assert round_trip(server, OLD, "java-by-new", "read", start_ms) == expected(start_ms)


@pytest.mark.kafka
def test_the_producer_is_told_which_record_of_a_batch_was_bad(server: ServerProcess) -> None:
    with RawConnection(server.port) as connection:
        assert connection.create_topic("compacted", configs={"cleanup.policy": "compact"}) == 0
    class_path = compiled(REFUSALS, needs(CURRENT))
    lines = run_java(class_path, "Refusals", server.address, "records", "compacted").splitlines()
    told = [line.split("\t") for line in lines]
    beside = "Failed to append record because it was part of a batch which had one more more"
    keyless = "Compacted topic cannot accept message without key in topic partition compacted-0"
    assert [number for number, *_ in told] == ["0", "1", "2"]
    assert told[1][1:] == ["InvalidRecordException", keyless]
    for _, exception, message in (told[0], told[2]):
        assert exception == "KafkaException"
        assert message.startswith(beside)


@pytest.mark.kafka
def test_a_share_consumer_is_told_that_there_are_no_share_groups(server: ServerProcess) -> None:
    with RawConnection(server.port) as connection:
        if SHARE_GROUP_HEARTBEAT in connection.api_versions().ranges:
            pytest.skip("this server has share groups")
    create_topic(server, "shared")
    class_path = compiled(REFUSALS, needs(CURRENT))
    told = run_java(class_path, "Refusals", server.address, "shares", "shared")
    assert "UnsupportedVersionException\tThe cluster does not support the share" in told


@pytest.mark.kafka
def test_mirror_maker_is_told_that_there_are_no_access_rules_to_carry_over(
    server: ServerProcess,
) -> None:
    class_path = compiled(REFUSALS, needs(CURRENT))
    told = run_java(class_path, "Refusals", server.address, "acls", "mirrored")
    refusal = "SecurityDisabledException\tNo Authorizer is configured"
    assert told.splitlines() == [
        f"describe all\t{refusal} on the broker",
        f"describe topics\t{refusal} on the broker",
        f"create User:a\t{refusal}.",
        f"create User:b\t{refusal}.",
    ]
