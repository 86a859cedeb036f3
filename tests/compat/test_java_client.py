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
COUNT, STEP_MS = 40, 1000
CURRENT, OLD = "kafka-4.3.1", "clients-0.10.2.2"


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
