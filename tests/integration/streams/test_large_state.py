"""A state of many keys: it survives a restart, and all processes stay within the memory given."""

import contextlib
import threading
from pathlib import Path

import confluent_kafka
import psutil
import pytest
from tests.integration.spark.killing import DriverProcess
from tests.integration.streams.large_state_process import APPLICATION, HEAP_MB
from tests.integration.streams.stage_process import INPUT, OUTPUT, counting
from tests.support.broker import BrokerProcess
from tests.support.streams_spark import create

from penstock.streams import StoreFollower

KEYS = 5_000_000
AGAIN = 1_000  # Every so many keys, one is counted once more after the restart.
PARTITIONS = 2
# The heap, what a JVM and RocksDB have beside it, and the Python workers with a batch each.
MEMORY_MB = HEAP_MB + 1_500 + 4 * 400


class Peak(threading.Thread):
    """The most memory that a driver and all its processes had at one moment."""

    def __init__(self, driver: DriverProcess) -> None:
        super().__init__(daemon=True)
        self.driver = driver
        self.megabytes = 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.5):
            self.megabytes = max(self.megabytes, sum(map(_own_mb, self.driver.family())))


def _own_mb(process: psutil.Process) -> int:
    """What a process has for itself: workers share the pages of the one they were forked from."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return int(process.memory_full_info().uss // 2**20)
    return 0


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_millions_of_keys_survive_a_restart_within_the_memory_given(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    create(broker.address, INPUT, OUTPUT, partitions=PARTITIONS)
    driver = DriverProcess(
        "tests.integration.streams.large_state_process", broker.address, tmp_path
    )
    feed(broker.address, range(KEYS))
    first = ran(driver)
    feed(broker.address, range(0, KEYS, AGAIN))
    second = ran(driver)
    print(f"{KEYS} keys: {first} MB at most, {second} MB after the restart")
    assert max(first, second) < MEMORY_MB
    client = {"bootstrap.servers": broker.address}
    with StoreFollower(counting(), APPLICATION, "counts", client) as follower:
        follower.wait_until_current(timeout_s=1800)
        assert follower.get(f"{AGAIN:012d}") == 2 and follower.get(f"{AGAIN + 1:012d}") == 1
        with follower.view() as view:
            counts = [count for _, count in view.all()]
    assert len(counts) == KEYS and sum(counts) == KEYS + len(range(0, KEYS, AGAIN))


def feed(address: str, numbers: range) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": address, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000}
    )
    for number in numbers:
        while True:
            try:
                producer.produce(INPUT, b"x", f"{number:012d}")
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(600) == 0


def ran(driver: DriverProcess) -> int:
    """Run to the end of the input; the most memory it took, in megabytes."""
    driver.ensure()
    peak = Peak(driver)
    peak.start()
    try:
        assert driver.process is not None and driver.process.wait(3_000) == 0, driver.log_end
    finally:
        peak.ended.set()
        peak.join()
        driver.kill()
    return peak.megabytes
