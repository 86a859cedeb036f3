"""A stage under kill -9 of all that takes part: state, output and changelog stay together.

It counts by key while rows keep coming, a result for each key and batch. In the end the counts of
every key only grew, and the last is all there were: nothing was lost, counted twice or forgotten.
A driver may lose its disk as well: then it goes on from what its topics tell. A driver
whose JVM alone is killed starts another by itself.
"""

import contextlib
import random
import shutil
from collections import defaultdict
from pathlib import Path

import psutil
import pytest
from tests.conftest import IS_LONG
from tests.integration.spark.crashing import consumed
from tests.integration.spark.killing import DriverProcess, Feeder
from tests.integration.spark.test_exactly_once_kills import (
    BROKER,
    DECIDED,
    KEYS,
    RARELY_S,
    STEPS,
    WRITING,
    Rig,
    SinkDriver,
    create,
)
from tests.integration.streams.stage_process import APPLICATION, INPUT, OUTPUT
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.streams_spark import long_of

from penstock.spark.sink.transactional import QueryNames

SEEDS = range(2 if IS_LONG else 1)
DISK = "disk"  # The driver, and all that it had on its disk.
JVM = "jvm"  # Spark's JVM alone.
VICTIMS = ("driver", "worker", "broker", JVM, DISK)


class StageDriver(SinkDriver):
    """An application whose steps are read from its stage's checkpoint."""

    def __init__(self, address: str, directory: Path) -> None:
        DriverProcess.__init__(self, "tests.integration.streams.stage_process", address, directory)
        self.checkpoint = directory / "state" / APPLICATION / "stages" / "0"

    @property
    def names(self) -> QueryNames | None:
        found = super().names
        if found is None:
            return None
        return QueryNames(prefix=f"{APPLICATION}-stage-0", query_id=found.query_id)

    def kill_the_jvm(self) -> bool:
        """SIGKILL to the JVM; False when there is none now."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for one in self.family():
                if one.name() == "java":
                    one.kill()
                    return True
        return False


class StageRig(Rig):
    """The application, and the eyes to see when it is to be killed."""

    def __init__(self, broker: BrokerProcess, directory: Path, chance: random.Random) -> None:
        super().__init__(broker, directory, chance)
        self.driver: StageDriver = StageDriver(broker.address, directory)

    def strike(self, victim: str, step: str) -> None:
        if victim == JVM:
            self.wait_for(step)
            self._strike_the_jvm()
            return
        super().strike("driver" if victim == DISK else victim, step)
        if victim == DISK:
            shutil.rmtree(self.driver.directory / "state")

    def _strike_the_jvm(self) -> None:
        starts = self.driver.starts
        self.run_until(self.driver.kill_the_jvm, "a JVM to kill")
        done = self.driver.latest_done
        self.run_until(lambda: self.driver.latest_done > done, "a batch of the next JVM")
        assert self.driver.starts == starts, "the driver ended with its JVM"


class KeyFeeder(Feeder):
    """A row of one key after the other."""

    rows_at_once = 5
    every_s = 0.02

    def write(self, number: int) -> None:
        self.producer.produce(INPUT, b"x", b"%d" % (number % KEYS))


def rounds(chance: random.Random) -> list[tuple[str, str]]:
    """Whom to strike and when; in the short form each victim once."""
    if not IS_LONG:
        return [("worker", WRITING), ("driver", DECIDED), (DISK, DECIDED)]
    struck = [(victim, step) for victim in VICTIMS for step in STEPS]
    struck += [("worker", WRITING)]
    chance.shuffle(struck)
    return struck


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_count_is_written_once_whatever_is_killed(
    start_broker: StartBroker, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    broker = start_broker(BROKER)
    for topic in (INPUT, OUTPUT):
        create(broker.address, topic)
    feeder, rig = KeyFeeder(broker.address), StageRig(broker, tmp_path, chance)
    feeder.start()
    try:
        for victim, step in rounds(chance):
            rig.strike(victim, step)
            print(f"killed: {victim}, {step}; batch {rig.driver.latest_done}", flush=True)
        rows = feeder.stop()
        rig.run_until(
            lambda: sum(n[-1] for n in written(broker.address).values()) >= rows,
            "all rows",
            every_s=RARELY_S,
        )
    finally:
        feeder.stopping.set()
        rig.driver.kill()
    counts = written(broker.address)
    for number in range(KEYS):
        key = b"%d" % number
        total = len(range(number, rows, KEYS))
        assert counts[key] == sorted(set(counts[key])), f"key {key!r}"
        assert counts[key][-1] == total, f"key {key!r}"
    changelog = consumed(broker.address, f"{APPLICATION}-counts-changelog")
    newest = {message.key(): long_of(message.value()) for message in changelog}
    assert newest == {key: numbers[-1] for key, numbers in counts.items()}


def written(address: str) -> dict[bytes, list[int]]:
    """The committed counts of the output by key, in order."""
    by_key: dict[bytes, list[int]] = defaultdict(list)
    for message in consumed(address, OUTPUT):
        by_key[message.key()].append(long_of(message.value()))
    return by_key
