"""Topic to tables under kill -9 of driver, Python workers and broker: every row is there once.

A driver process lands one topic in a Delta, an Iceberg and a Parquet table and merges its counts
into another Delta table, while rows, new fields and values that do not fit keep coming. In each
round something is killed: at an exact step between a task's first row and the end of a batch, or at
random. In the end every table holds what was sent, and its dead-letter topic the rest.
"""

import contextlib
import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from tests.conftest import IS_LONG
from tests.integration.lake.landing import APPENDED, MERGED, TOPIC, dead_letters_of
from tests.integration.lake.topics import create
from tests.integration.spark.crashing import consumed
from tests.integration.spark.killing import DriverProcess, Feeder
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.waiting import eventually
from tests.unit.lake.reading import rows_of

from penstock.lake.query import tidy
from penstock.lake.spec import TableSpec

HERE = Path(__file__).parent
KEYS = 7
BAD_EVERY = 25  # Rows.
PARTS = 12  # All rounds are spread over so many runs, each with tables of its own.
SEEDS = int(os.environ.get("PENSTOCK_LAKE_SEEDS", str(PARTS)))

TASK_STEPS = ("writing", "written")
COMMIT_STEPS = ("evolved", "before commit", "committed", "before compaction", "compacted")
MORE_STEPS = {"iceberg": ("half compacted",), "parquet": ("half compacted", "logged")}
# "driver" is all of it at once, as when a machine dies; "driver alone" leaves the JVM to find out.
DRIVERS = ("driver", "driver alone")
ANYWHERE = "anywhere"


def bad(number: int) -> bytes:
    """A value that cannot be decoded, or one that fits no table: two names for one column."""
    if number // BAD_EVERY % 2:
        return b'{"n": %d, "N": %d}' % (number, number)
    return b"no JSON: %d" % number


def field_of(number: int) -> str:
    """Every 500 rows the table gets one more column."""
    return f"field_{number // 500}"


class Round(NamedTuple):
    victim: str
    step: str
    table: str  # Where the step is seen; the victim serves them all.


def all_rounds(chance: random.Random) -> list[Round]:
    """Every victim at every step of every table, and as often at random."""
    rounds = []
    for table in (*APPENDED, MERGED):
        commits = (*COMMIT_STEPS, *MORE_STEPS.get(table, ()))
        # The merges' table is made once, and commits in the driver itself.
        commits = tuple(s for s in commits if table != MERGED or s != "evolved")
        rounds += [Round("worker", step, table) for step in TASK_STEPS]
        rounds += [Round("broker", step, table) for step in (*TASK_STEPS, *commits)]
        rounds += [Round(chance.choice(DRIVERS), step, table) for step in (*TASK_STEPS, *commits)]
        if table != MERGED:
            rounds += [Round("worker", step, table) for step in commits]
    rounds += [Round(victim, ANYWHERE, "") for victim in (*DRIVERS, "worker", "broker") * 4]
    chance.shuffle(rounds)
    return rounds


def rounds_of(seed: int) -> list[Round]:
    """A part of them per seed; without PENSTOCK_LONG the steps that tell most."""
    if IS_LONG:
        return all_rounds(random.Random(seed // PARTS))[seed % PARTS :: PARTS]
    return [
        Round("worker", "committed", "iceberg"),
        Round("driver", "committed", "delta"),
        Round("broker", "writing", "parquet"),
        Round("driver alone", "logged", "parquet"),
    ]


class LandingDriver(DriverProcess):
    """A driver that takes orders: what is to be killed at which step."""

    def __init__(self, address: str, directory: Path) -> None:
        self.orders = directory / "orders"
        self.orders.mkdir()
        paths = [str(HERE / "strikes"), os.environ.get("PYTHONPATH", "")]
        super().__init__(
            "tests.integration.lake.landing",
            address,
            directory,
            {
                "PYTHONPATH": os.pathsep.join(path for path in paths if path),
                "LAKE_STRIKES": str(self.orders),
            },
        )

    def ensure(self) -> None:
        """Start it unless it runs, and let the orders say which process it is."""
        if self.runs:
            return
        super().ensure()
        assert self.process is not None
        (self.orders / "driver.pid").write_text(str(self.process.pid))


class RowFeeder(Feeder):
    """Every now and then the rows get a new field, and some fit no table."""

    rows_at_once = 2
    every_s = 0.05

    def write(self, number: int) -> None:
        """A row, and at times a bad one beside it."""
        value = {"n": number, "k": str(number % KEYS), field_of(number): number}
        self.producer.produce(TOPIC, json.dumps(value).encode())
        if number % BAD_EVERY == 0:
            self.producer.produce(TOPIC, bad(number))


class Rig:
    """All that is killed, and the orders to do so."""

    def __init__(self, broker: BrokerProcess, directory: Path, chance: random.Random) -> None:
        self.broker = broker
        self.driver = LandingDriver(broker.address, directory)
        self.chance = chance

    def strike(self, one: Round) -> None:
        """Kill somebody when a table is at some step; the broker is started again at once."""
        if one.step == ANYWHERE:
            self._strike_anywhere(one.victim)
        else:
            self._order(one)
        if one.victim in DRIVERS and self.driver.process is not None:
            self.driver.process.wait(120)
        if one.victim == "broker":
            self.broker.kill()  # It is gone already, unless this is how it goes.
            self.broker.start()

    def _order(self, one: Round) -> None:
        orders = self.driver.orders
        (orders / "broker.pid").write_text(str(self.broker.pid))
        (orders / "fresh").write_text(json.dumps(one._asdict()))
        (orders / "taken").unlink(missing_ok=True)
        (orders / "fresh").rename(orders / "order")

        def taken() -> bool:
            # An order is taken before it is carried out: a driver that is gone although nobody took
            # it went by itself. Asked the other way round, the struck one would be started again.
            is_gone = not self.driver.runs
            is_taken = (orders / "taken").exists()
            if is_gone and not is_taken:
                self.driver.ensure()
            return is_taken

        try:
            eventually(taken, timeout_s=240, what=f"{one}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.driver.log_end}") from None

    def _strike_anywhere(self, victim: str) -> None:
        workers = self._workers()
        time.sleep(self.chance.uniform(0, 4))  # Not for luck: the moment is the test's input.
        with contextlib.suppress(psutil.NoSuchProcess):
            if victim == "worker":
                self.chance.choice(self.driver.workers() or workers).kill()
            elif victim == "driver":
                self.driver.kill()
            elif victim == "driver alone":
                for one in self.driver.family()[:1]:
                    one.kill()

    def _workers(self) -> list[psutil.Process]:
        """Of a driver that is started again if it ends by itself."""

        def look() -> list[psutil.Process]:
            self.driver.ensure()
            return self.driver.workers()

        return eventually(look, timeout_s=240, what="Python workers")

    def finish(self) -> None:
        """Let the driver land the rest, and end."""
        self._workers()
        assert self.driver.process is not None
        self.driver.process.send_signal(signal.SIGTERM)
        assert self.driver.process.wait(400) == 0, self.driver.log_end


@pytest.mark.timeout(3600 if IS_LONG else 1800)
@pytest.mark.parametrize("seed", range(SEEDS if IS_LONG else 1))
def test_every_row_is_in_every_table_once_whatever_is_killed(
    start_broker: StartBroker, tmp_path: Path, seed: int
) -> None:
    broker = start_broker()
    for topic in (TOPIC, *map(dead_letters_of, APPENDED)):
        create(broker, topic)
    feeder = RowFeeder(broker.address)
    rig = Rig(broker, tmp_path, random.Random(seed))
    feeder.start()
    try:
        for number, one in enumerate(rounds_of(seed), 1):
            rig.strike(one)
            print(f"{number}: killed {one.victim}, {one.step} {one.table}", flush=True)
        row_count = feeder.stop()
        rig.finish()
    finally:
        feeder.stopping.set()
        rig.driver.kill()
    for kind in APPENDED:
        assert_exact(tmp_path / kind, kind, row_count)
        letters = [one.value() for one in consumed(broker.address, dead_letters_of(kind))]
        assert Counter(letters) == Counter(map(bad, range(0, row_count, BAD_EVERY)))
        assert_tidied(table_spec(tmp_path / kind, kind))
    spec = TableSpec(directory=str(tmp_path / MERGED), format="delta")
    assert_tidied(spec)
    counts = sorted((row["k"], row["count"]) for row in rows_of(spec))
    assert counts == sorted(Counter(str(n % KEYS) for n in range(row_count)).items())


def table_spec(table: Path, kind: str) -> TableSpec:
    return TableSpec(directory=str(table), format=kind, table_name=f"lake.{TOPIC}")


def assert_exact(table: Path, kind: str, row_count: int) -> None:
    """Each row once, with all of its fields."""
    found = rows_of(table_spec(table, kind))
    times = Counter(row["n"] for row in found)
    doubled = [n for n, count in times.items() if count > 1]
    missing = [n for n in range(row_count) if n not in times]
    assert not doubled, f"{kind}: {len(doubled)} rows more than once: {doubled[:10]}"
    assert not missing, f"{kind}: {len(missing)} rows are missing: {missing[:10]}"
    assert len(times) == row_count
    assert all(row[field_of(row["n"])] == row["n"] for row in found)


def assert_tidied(spec: TableSpec) -> None:
    """The next start leaves nothing aside of attempts that were killed."""
    own = Path(spec.directory, "_penstock")
    tidy(spec, json.loads((own / "checkpoint" / "metadata").read_text())["id"])
    assert not list(own.glob("staging/**/part-*"))
