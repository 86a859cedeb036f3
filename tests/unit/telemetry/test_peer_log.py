"""Lines about strangers, which a flood of them does not multiply."""

import logging

import pytest

from penstock.telemetry.peer_log import PeerLog


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def peers(clock: Clock, caplog: pytest.LogCaptureFixture) -> PeerLog:
    caplog.set_level(logging.INFO)
    return PeerLog(logging.getLogger("peers"), lines_per_s=2, burst=3, now_s=clock)


@pytest.fixture
def kinds(clock: Clock, caplog: pytest.LogCaptureFixture) -> PeerLog:
    caplog.set_level(logging.INFO)
    return PeerLog(
        logging.getLogger("kinds"), burst=100, lines_per_kind_s=1, burst_per_kind=2, now_s=clock
    )


def test_few_lines_come_as_they_are(peers: PeerLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        peers.info("peer %d", number)
    assert caplog.messages == ["peer 0", "peer 1", "peer 2"]


def test_a_flood_is_left_out_and_counted(
    peers: PeerLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        peers.warning("peer %d", number)
    clock.now_s = 0.5
    peers.info("another %d", 1000)
    assert caplog.messages[3:] == ["another 1000 (997 lines about other peers were left out)"]
    clock.now_s = 100.0
    for number in range(4):
        peers.info("later %d", number)
    assert caplog.messages[4:] == ["later 0", "later 1", "later 2"]


def test_a_level_that_is_off_uses_nothing_up(
    peers: PeerLog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(10):
        peers.info("unheard")
    peers.warning("heard")
    assert caplog.messages == ["heard"]


def test_a_flood_of_one_kind_hides_no_other(
    kinds: PeerLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        kinds.info("peer %d: %s", number, "silent")
    kinds.info("peer %d: %s", 1000, "rude")
    clock.now_s = 1.0
    kinds.info("peer %d: %s", 1001, "silent")
    kinds.info("peer %d: %s", 1002, "silent")
    assert caplog.messages == [
        "peer 0: silent",
        "peer 1: silent",
        "peer 1000: rude (998 lines about other peers were left out)",
        "peer 1001: silent",
    ]


def test_reasons_without_end_are_bounded_all_the_same(
    kinds: PeerLog, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        kinds.info("peer %d: %s", number, f"sent {number}")
    assert len(caplog.messages) == 100
    assert len(kinds._kinds) <= 100
