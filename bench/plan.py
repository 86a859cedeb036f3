"""How much to measure: the full amounts of the table, or small ones that finish in two minutes."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Amounts; every one can be set on the command line."""

    rounds: int = 5
    large_bytes: int = 1_000_000_000  # Per round, in 1 MB batches.
    small_bytes: int = 400_000_000  # Per round, in 16 KB batches.
    fetch_bytes: int = 2_000_000_000  # Per round.
    log_bytes: int = 1_400_000_000  # The log that is read from its start; a segment is 1 GiB.
    trips: int = 5_000
    connects: int = 4_000
    crowds: Sequence[int] = (1, 20, 200, 1000, 5000)  # Connections at once.
    crowd_seconds: float = 10.0
    starts: int = 5
    memory_bytes: int = 10_000_000_000
    partition_counts: Sequence[int] = (1, 100, 1000)
    stored_bytes: Sequence[int] = (1_000_000_000, 20_000_000_000)
    scale_bytes: int = 400_000_000
    records: int = 500_000
    commits: int = 20_000
    members: int = 100
    transactions: int = 1_000
    spark_bytes: int = 400_000_000  # What Spark reads in a round.
    spark_triggers: int = 40
    replicated_bytes: int = 600_000_000  # Per round, each byte to three brokers.
    paced_records: int = 20_000
    kills: int = 50
    kafka_kills: int = 10  # Each takes half a minute: sessions, and a virtual machine that starts.
    failover_partitions: int = 3_000
    controller_kills: int = 5
    controller_partitions: int = 10_000
    catch_up_bytes: int = 3_000_000_000
    idle_partitions: int = 1_000
    idle_seconds: float = 30.0
    rest_records: int = 400_000
    rest_streams: int = 1_000
    rest_streamed: int = 40  # Records, one by one, to all of the streams.
    streams_records: int = 2_000_000
    streams_keys: Sequence[int] = (1_000, 100_000, 1_000_000)
    streams_lookups: int = 20_000
    connect_records: int = 1_000_000
    connect_idle_s: float = 60.0
    connect_kills: int = 10
    connect_changes: int = 500  # One after the other, each timed.
    mirror_records: int = 500_000
    sql_pulls: int = 5_000
    sql_pushes: int = 100
    registry_gets: int = 40_000
    registrations: int = 300
    stored_schemas: int = 100_000


FULL = Plan()
USUAL = Plan(
    rounds=3,
    fetch_bytes=1_500_000_000,
    starts=3,
    memory_bytes=3_000_000_000,
    stored_bytes=(1_000_000_000, 4_000_000_000),
    records=300_000,
    commits=10_000,
    spark_bytes=200_000_000,
    kafka_kills=5,
    streams_records=1_000_000,
    controller_kills=3,
    catch_up_bytes=1_500_000_000,
)
QUICK = Plan(
    rounds=1,
    large_bytes=200_000_000,
    small_bytes=100_000_000,
    fetch_bytes=400_000_000,
    trips=1_000,
    connects=400,
    crowds=(1, 200, 1000),
    crowd_seconds=3.0,
    starts=1,
    memory_bytes=400_000_000,
    partition_counts=(1, 100),
    stored_bytes=(200_000_000, 600_000_000),
    scale_bytes=100_000_000,
    records=50_000,
    commits=2_000,
    transactions=200,
    spark_bytes=40_000_000,
    spark_triggers=12,
    replicated_bytes=100_000_000,
    paced_records=5_000,
    kills=6,
    kafka_kills=2,
    failover_partitions=300,
    rest_records=100_000,
    rest_streamed=10,
    controller_kills=2,
    controller_partitions=1_000,
    catch_up_bytes=300_000_000,
    idle_seconds=10.0,
    streams_records=1_000_000,  # With fewer only the start of an application shows.
    streams_lookups=5_000,
    connect_records=500_000,
    connect_idle_s=20.0,
    connect_kills=5,
    connect_changes=100,
    mirror_records=100_000,
    sql_pulls=1_000,
    sql_pushes=20,
    registry_gets=8_000,
    registrations=60,
    stored_schemas=20_000,
)


def alternate(
    runs: Mapping[str, Callable[[], Result]], *, rounds: int, warm_up: bool = True
) -> dict[str, list[Result]]:
    """Run the subjects in turn, A B C, C B A, A B C; a first turn that is not counted warms up.

    The order turns around each time, and each waits for the disk to be quiet, so that nobody pays
    for what the one before has left to be written.
    """
    found: dict[str, list[Result]] = {name: [] for name in runs}
    for turn in range(rounds + warm_up):
        names = list(runs) if turn % 2 == 0 else list(runs)[::-1]
        for name in names:
            settle()
            result = runs[name]()
            if turn or not warm_up:
                found[name].append(result)
    return found


def settle(*, dirty_bytes_max: int = 50_000_000, seconds_max: float = 60) -> None:
    """Wait until the kernel has hardly anything left to write."""
    give_up_s = time.monotonic() + seconds_max
    while dirty_bytes() > dirty_bytes_max and time.monotonic() < give_up_s:
        os.sync()
        time.sleep(0.05)


def dirty_bytes() -> int:
    """What waits to be written, or is being written, to any disk."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    sizes = {name: value for name, _, value in (line.partition(":") for line in lines)}
    return sum(int(sizes[name].split()[0]) * 1024 for name in ("Dirty", "Writeback"))
