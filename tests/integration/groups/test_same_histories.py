"""The histories of tests/golden/groups, played to Apache Kafka and to Penstock in real time.

Both must answer every step alike. Histories that need a crash, a broken disk or other settings are
left out, and those that say how we differ on purpose. The rest are played side by side, so all of
it takes as long as the longest.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.integration.groups.live_transcript import TOPIC, LiveTranscript
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

from penstock.client.wire.connection import BrokerConnection
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(900)]

ONE_SHARD = {"offsets.topic.num.partitions": "1"}
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "groups"
LIVE = [
    path
    for path in sorted(GOLDEN.glob("*.txt"))
    if not any(f"> {word}" in path.read_text() for word in ("crash", "break", "expire"))
    and "settings" not in path.read_text()
    and "Apache Kafka" not in path.read_text()
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[list[str]]]]:
    """What Kafka and Penstock answered to each history."""
    directory = tmp_path_factory.mktemp("servers")
    servers: list[ServerProcess] = [
        KafkaProcess(needs(CURRENT), directory / "kafka", ONE_SHARD),
        BrokerProcess(directory / "penstock", ONE_SHARD),
    ]
    with servers[0] as kafka, servers[1] as penstock:
        for server in (kafka, penstock):
            server.start()
            with RawConnection(server.port) as connection:
                assert connection.create_topic(TOPIC) == 0
            eventually(partial(_has_coordinator, server.port), timeout_s=120, what="a coordinator")
            # The first of everything is slow, and timers run meanwhile.
            LiveTranscript(server.port, "warm").play((GOLDEN / "first_rebalance.txt").read_text())
        with ThreadPoolExecutor(max_workers=2 * len(LIVE)) as threads:
            playing = {
                path.stem: [
                    threads.submit(LiveTranscript(server.port, path.stem).play, path.read_text())
                    for server in (kafka, penstock)
                ]
                for path in LIVE
            }
            yield {name: [played.result() for played in both] for name, both in playing.items()}


def _has_coordinator(port: int) -> bool:
    """Whether the offsets topic is there and loaded: an unknown group is then simply dead."""
    with BrokerConnection(HOST, port) as connection:
        connection.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["nobody"]), 4)
    return LiveTranscript(port, "nobody").play("> state") == ["> state", "Dead []"]


@pytest.mark.parametrize("name", [path.stem for path in LIVE])
def test_both_servers_tell_the_same_story(answers: dict[str, list[list[str]]], name: str) -> None:
    kafka, penstock = answers[name]
    assert penstock == kafka
