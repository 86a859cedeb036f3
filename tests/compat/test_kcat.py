"""kcat as Debian ships it, on a librdkafka some years old."""

import json
import subprocess

import pytest
from tests.support.outside import needs
from tests.support.processes import ServerProcess
from tests.support.samples import CODECS, stored_codec
from tests.support.wire import RawConnection

# Each line shrinks by itself: librdkafka sends a batch uncompressed where compression would not
# make it smaller, and on a busy machine the first batch may hold the first line alone.
LINES = [f"key-{i}:line {i} " + "eau " * (50 + i) for i in range(40)]


def kcat(server: ServerProcess, *arguments: str, lines: list[str] | None = None) -> str:
    command = [str(needs("kcat")), "-b", server.address, *arguments]
    done = subprocess.run(
        command,
        input="".join(line + "\n" for line in lines or []),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_by_offset_and_by_time_in_every_compression(
    server: ServerProcess, codec: str
) -> None:
    topic = f"kcat-{codec}"
    with RawConnection(server.port) as connection:
        assert connection.create_topic(topic) == 0
    kcat(server, "-P", "-t", topic, "-p", "0", "-K", ":", "-z", codec, lines=LINES)

    shape = ["-C", "-t", topic, "-p", "0", "-e", "-q", "-f", "%o %k:%s\n"]
    expected = [f"{offset} {line}" for offset, line in enumerate(LINES)]
    assert kcat(server, *shape, "-o", "beginning").splitlines() == expected
    assert kcat(server, *shape, "-o", "25").splitlines() == expected[25:]
    assert kcat(server, *shape, "-o", "-5").splitlines() == expected[-5:]
    assert kcat(server, *shape, "-o", "s@1").splitlines() == expected
    assert stored_codec(server.port, topic) == codec


def test_metadata_lists_the_broker_and_its_topics(server: ServerProcess) -> None:
    with RawConnection(server.port) as connection:
        assert connection.create_topic("kcat-listed", partitions=3) == 0
    listed = json.loads(kcat(server, "-L", "-J", "-t", "kcat-listed"))
    assert [broker["name"] for broker in listed["brokers"]] == [server.address]
    (topic,) = listed["topics"]
    assert [partition["partition"] for partition in topic["partitions"]] == [0, 1, 2]


def test_offsets_are_found_by_time(server: ServerProcess) -> None:
    with RawConnection(server.port) as connection:
        assert connection.create_topic("kcat-times") == 0
    kcat(server, "-P", "-t", "kcat-times", lines=["one", "two"])
    assert "offset 0" in kcat(server, "-Q", "-t", "kcat-times:0:1")
