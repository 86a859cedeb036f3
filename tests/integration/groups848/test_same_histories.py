"""The histories of tests/golden/consumer_groups, played to Apache Kafka and to Penstock.

Both must answer every step alike. Histories that need a broken disk or other settings are left out,
those with patterns, which Kafka looks up only after it has answered, and those that say how we
differ on purpose. The rest are played side by side, so all of it takes as long as the longest.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.integration.groups848.live_history import LiveHistory, LiveRig
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import ServerProcess
from tests.support.waiting import eventually

from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(900)]

# Without a pause between two assignments it does not matter how fast a server is.
SETTINGS = {"offsets.topic.num.partitions": "1", "group.consumer.assignment.interval.ms": "0"}
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "consumer_groups"
# Who gets which topic depends on the ids of the topics, which are random.
CHANCE = {"revoking_more", "unsubscribed_in_target"}
LIVE = [
    path
    for path in sorted(GOLDEN.glob("*.txt"))
    if not any(f"> {word}" in path.read_text() for word in ("break", "config"))
    and "group.consumer.m" not in path.read_text()
    and "pattern" not in path.read_text()
    and "Apache Kafka" not in path.read_text()
    and path.stem not in CHANCE
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """What Kafka and Penstock answered to each history."""
    directory = tmp_path_factory.mktemp("servers")
    servers: list[ServerProcess] = [
        KafkaProcess(needs(CURRENT), directory / "kafka", SETTINGS),
        BrokerProcess(directory / "penstock", SETTINGS),
    ]
    with servers[0] as kafka, servers[1] as penstock:
        for server in (kafka, penstock):
            server.start()
            eventually(partial(_has_coordinator, server.port), timeout_s=120, what="a coordinator")
            # The first of everything is slow, and timers run meanwhile.
            LiveHistory(server.port, "warm").play((GOLDEN / "two_share.txt").read_text())
        with ThreadPoolExecutor(max_workers=2 * len(LIVE)) as threads:
            playing = {
                path.stem: [
                    threads.submit(LiveHistory(server.port, path.stem).play, path.read_text())
                    for server in (kafka, penstock)
                ]
                for path in LIVE
            }
            yield {name: [played.result() for played in both] for name, both in playing.items()}


def _has_coordinator(port: int) -> bool:
    """Whether the offsets topic is there and loaded: an unknown group is then simply dead."""
    rig = LiveRig(port, "nobody")
    rig.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["nobody"]), 4)
    return rig.described() == "Dead"


@pytest.mark.parametrize("name", [path.stem for path in LIVE])
def test_both_servers_tell_the_same_story(answers: dict[str, list[str]], name: str) -> None:
    kafka, penstock = answers[name]
    assert penstock == kafka
