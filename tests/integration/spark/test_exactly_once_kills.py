"""Topic to topic under kill -9 of driver, Python workers and broker: every row arrives once.

A driver process runs a streaming query while rows keep coming. In each round something is killed:
at random, or just when a batch is at a certain step between its write and its checkpoint. In the
end the output, read by a reader of committed records, holds every row once and in its order.
"""

import contextlib
import json
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.conftest import IS_LONG
from tests.integration.spark.crashing import consumed, left_open
from tests.integration.spark.killing import DriverProcess, Feeder
from tests.integration.spark.sink_process import INPUT, OUTPUT
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.processes import assert_group_is_gone
from tests.support.waiting import eventually

from penstock.client.wire.cluster import ClusterClient
from penstock.errors import PenstockError
from penstock.spark.sink.transactional import BatchLedger, QueryNames

PARTITIONS = 3
KEYS = 7
BROKER = {"num.partitions": str(PARTITIONS)}
# Steps of a batch, as they can be seen from outside.
PLANNED, WRITING, DECIDED, DONE, ANYWHERE = "planned", "writing", "decided", "done", "anywhere"
STEPS = (PLANNED, WRITING, DECIDED, DONE, ANYWHERE)
STALL_S = 1200 if IS_LONG else 240
RARELY_S = 0.5  # Between looks at whole topics, which cost the driver its processor.


class SinkDriver(DriverProcess):
    """A driver whose steps are read from its checkpoint."""

    def __init__(self, address: str, directory: Path) -> None:
        super().__init__("tests.integration.spark.sink_process", address, directory)
        self.checkpoint = directory / "checkpoint"

    def ensure(self) -> None:
        """Start it unless it runs; nothing of an earlier one is left then."""
        if not self.runs:
            self.kill()
        super().ensure()

    def kill(self) -> None:
        """SIGKILL to all of it at once, as when a machine dies."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert_group_is_gone(self.process.pid)
        self.process = None

    def kill_a_worker(self, chance: random.Random) -> bool:
        """SIGKILL to one Python worker; False when there is none now."""
        workers = self.workers()
        if not workers:
            return False
        with contextlib.suppress(psutil.NoSuchProcess):
            chance.choice(workers).kill()
        return True

    @property
    def latest_planned(self) -> int:
        return self._latest("offsets")

    @property
    def latest_done(self) -> int:
        return self._latest("commits")

    @property
    def batches(self) -> tuple[int, int]:
        return self.latest_planned, self.latest_done

    def _latest(self, name: str) -> int:
        folder = self.checkpoint / name
        if not folder.is_dir():
            return -1
        return max((int(each.name) for each in folder.iterdir() if each.name.isdigit()), default=-1)

    @property
    def names(self) -> QueryNames | None:
        metadata = self.checkpoint / "metadata"
        if not metadata.is_file():
            return None
        query_id = json.loads(metadata.read_text())["id"]
        return QueryNames(prefix="penstock-spark", query_id=query_id)


class RowFeeder(Feeder):
    """As many rows as the driver can take."""

    rows_at_once = 5
    every_s = 0.02

    def write(self, number: int) -> None:
        """A row of one of the keys."""
        self.producer.produce(INPUT, b"%d" % number, b"%d" % (number % KEYS))


class Rig:
    """All that is killed, and the eyes to see when."""

    def __init__(self, broker: BrokerProcess, directory: Path, chance: random.Random) -> None:
        self.broker = broker
        self.driver = SinkDriver(broker.address, directory)
        self.chance = chance

    def run_until(self, is_there: Callable[[], bool], what: str, *, every_s: float = 0.002) -> None:
        """Keep the driver alive until something is true; look often, it may not last.

        How long that takes is the machine's affair, as long as batches are planned and finished.
        """

        def look() -> bool:
            self.driver.ensure()
            return is_there()

        try:
            eventually(
                look,
                timeout_s=STALL_S,
                every_s=every_s,
                what=what,
                moving=lambda: self.driver.batches,
            )
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.driver.log_end}") from None

    def wait_for(self, step: str) -> None:
        """Until some batch is at this step."""
        done = self.driver.latest_done
        if step == PLANNED:
            self.run_until(lambda: self.driver.latest_planned > done + 1, "a planned batch")
        elif step == WRITING:
            self.run_until(lambda: bool(self._open()), "an open transaction")
        elif step == DECIDED:
            self.run_until(lambda: self._decided() > self.driver.latest_done, "a decision")
        else:
            self.run_until(lambda: self.driver.latest_done > done, "a finished batch")
        if step == ANYWHERE:
            time.sleep(self.chance.uniform(0, 1))  # Not for luck: the moment is the test's input.

    def _open(self) -> list[str]:
        try:
            return left_open(self.broker.address)
        except PenstockError:
            return []

    def _decided(self) -> int:
        names = self.driver.names
        if names is None:
            return -1
        try:
            with ClusterClient(self.broker.address) as cluster:
                decision = BatchLedger(cluster, names).latest()
        except PenstockError:
            return -1
        return -1 if decision is None else decision.batch_id

    def strike(self, victim: str, step: str) -> None:
        """Kill one of the three when a batch is at this step."""
        self.wait_for(step)
        if victim == "driver":
            self.driver.kill()
        elif victim == "worker":
            self.run_until(lambda: self.driver.kill_a_worker(self.chance), "a worker to kill")
        else:
            self.broker.kill()
            self.broker.start()


def rounds(chance: random.Random) -> list[tuple[str, str]]:
    """Whom to strike and when; in the short form each victim once."""
    if not IS_LONG:
        return [("worker", WRITING), ("broker", chance.choice(STEPS)), ("driver", DECIDED)]
    struck = [(victim, step) for victim in ("driver", "worker", "broker") for step in STEPS]
    struck += [("driver", DECIDED), ("driver", WRITING)]
    struck += [("worker", WRITING), ("broker", WRITING), ("broker", DECIDED)]
    chance.shuffle(struck)
    return struck


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(5 if IS_LONG else 1))
def test_rows_arrive_once_and_in_order_whatever_is_killed(
    start_broker: StartBroker, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    broker = start_broker(BROKER)
    for topic in (INPUT, OUTPUT):
        create(broker.address, topic)
    feeder = RowFeeder(broker.address)
    rig = Rig(broker, tmp_path, chance)
    feeder.start()
    try:
        for victim, step in rounds(chance):
            rig.strike(victim, step)
            print(f"killed: {victim}, {step}; batch {rig.driver.latest_done}", flush=True)
        row_count = feeder.stop()
        rig.run_until(
            lambda: sum(map(len, written(broker.address).values())) >= row_count,
            "all rows",
            every_s=RARELY_S,
        )
    finally:
        feeder.stopping.set()
        rig.driver.kill()
    assert_exact(written(broker.address), row_count)


def create(address: str, topic: str) -> None:
    with ClusterClient(address) as cluster:
        eventually(
            lambda: all(
                not found.error_code and len(found.partitions) == PARTITIONS
                for found in cluster.metadata([topic], allow_auto_creation=True).topics
            ),
            what=f"topic {topic}",
        )


def written(address: str) -> dict[bytes, list[int]]:
    """The committed rows of the output by key, in order."""
    by_key: dict[bytes, list[int]] = defaultdict(list)
    for message in consumed(address, OUTPUT):
        by_key[message.key()].append(int(message.value()))
    return by_key


def assert_exact(by_key: dict[bytes, list[int]], row_count: int) -> None:
    times = Counter(number for numbers in by_key.values() for number in numbers)
    doubled = [number for number, count in times.items() if count > 1]
    missing = [number for number in range(row_count) if number not in times]
    assert not doubled, f"{len(doubled)} rows stand there more than once: {doubled[:10]}"
    assert not missing, f"{len(missing)} rows are missing: {missing[:10]}"
    assert len(times) == row_count
    for key, numbers in by_key.items():
        assert numbers == sorted(numbers), f"the rows of key {key!r} changed their order"
