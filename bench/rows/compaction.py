"""Compaction of a large topic: how fast, in how much memory, and what others notice of it."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # Exported, but not declared so.
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from confluent_kafka.admin import ResourceType as Resource  # type: ignore[attr-defined]
from tests.support.apache_kafka import KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.waiting import eventually

from bench.keyed_load import RECORD_BYTES
from bench.plan import Plan, settle
from bench.report import Goal, Row
from bench.subjects import Round, Subjects, create_topic, raw_load, run_load

TOPIC, CALM = "bench-compacted", "bench-calm"
LOG_BYTES_MAX = 10_000_000_000
DEDUPE_BUFFER_BYTES = 134_217_728  # The default of log.cleaner.dedupe.buffer.size.
CLEAN_SOON = {"log.cleaner.backoff.ms": "100"}
NOT_YET = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1.0"}
CLEANING_SECONDS_MAX = 3_600
MB = 1_000_000

Server = BrokerProcess | KafkaProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """One compaction."""

    bytes: int
    seconds: float
    memory_bytes: int  # The most a cleaning process took; 0: it is not a process of its own.
    p99_before_us: float
    p99_during_us: float


def compaction(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """1 KB records in 16 KB batches: each key once, then each key twice on average."""
    log_bytes = min(LOG_BYTES_MAX, plan.stored_bytes[-1])
    for words, keys in (
        ("once", log_bytes // RECORD_BYTES),
        ("twice", log_bytes // RECORD_BYTES // 2),
    ):
        found: dict[str, Cleaned] = {}
        makers: dict[str, Callable[[dict[str, str]], Server]] = {
            "penstock": subjects.penstock,
            "kafka": subjects.kafka,
        }
        for name in subjects.starters():
            with makers[name](CLEAN_SOON) as server:
                found[name] = measure(server, plan, log_bytes=log_bytes, keys=keys)
        yield from rows(found, f"compaction of {log_bytes / 1e9:g} GB, {keys:,} keys {words}")


def rows(found: dict[str, Cleaned], work: str) -> Iterator[Row]:
    """Speed, memory, and the latency of others."""
    yield Row(
        work=work,
        unit="MB/s",
        rounds={name: [one.bytes / one.seconds / MB] for name, one in found.items()},
        goals=[Goal(beside=None, at_least=100)],
    )
    ours = found["penstock"]
    yield Row(
        work=f"{work}: memory of the cleaner beyond its buffer",
        unit="MB",
        rounds={"penstock": [(ours.memory_bytes - DEDUPE_BUFFER_BYTES) / MB]},
        goals=[Goal(beside=None, at_most=50)],
    )
    yield Row(
        work=f"{work}: produce p99 meanwhile, against before",
        unit="×",
        rounds={name: [one.p99_during_us / one.p99_before_us] for name, one in found.items()},
        goals=[Goal(beside=None, at_most=2)],
        note=f"{ours.p99_before_us:.0f} µs before, {ours.p99_during_us:.0f} µs meanwhile",
    )


def measure(server: Server, plan: Plan, *, log_bytes: int, keys: int) -> Cleaned:
    """Fill a topic, then let the cleaner at it while small records go to another one."""
    server.start()
    create_topic(server, TOPIC, 1, NOT_YET)
    create_topic(server, CALM, 1)
    write(server, log_bytes, keys)
    alter(server, "segment.ms", "100")
    time.sleep(0.3)
    write(server, RECORD_BYTES, keys)  # Rolls the last segment, which would not be cleaned.
    settle()
    before = trips(server, plan)
    watch = Watch(server)
    alter(server, "min.cleanable.dirty.ratio", "0.0")
    watch.start()
    during = [trips(server, plan)]
    while watch.is_alive():
        during.append(trips(server, plan))
    # The last one may have run on when the cleaning was over.
    meanwhile = during[:-1] or during
    return Cleaned(
        bytes=log_bytes,
        seconds=watch.seconds,
        memory_bytes=watch.memory_bytes,
        p99_before_us=before.percentile_us(0.99),
        p99_during_us=max(one.percentile_us(0.99) for one in meanwhile),
    )


def write(server: Server, total_bytes: int, keys: int) -> None:
    amount = ["--total-bytes", str(total_bytes), "--keys", str(keys)]
    run_load(server, "bench.keyed_load", "--port", str(server.port), "--topic", TOPIC, *amount)


def trips(server: Server, plan: Plan) -> Round:
    shape = ["--batch-bytes", "100", "--record-bytes", "100", "--topic", CALM]
    return raw_load(server, "round-trips", [*shape, "--count", str(plan.trips)])


def alter(server: Server, setting: str, value: str) -> None:
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(Resource.TOPIC, TOPIC, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": server.address})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(60)


class Watch(threading.Thread):
    """Looks at a server until its log is clean."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.seconds = 0.0
        self.memory_bytes = 0
        self._server = server
        self._end_offset = max(int(p.stem) for p in server.partition_dir(TOPIC).glob("*.log"))
        self._started_s = time.perf_counter()

    def run(self) -> None:
        eventually(self._is_clean, timeout_s=CLEANING_SECONDS_MAX, every_s=0.05)
        self.seconds = time.perf_counter() - self._started_s

    def _is_clean(self) -> bool:
        self.memory_bytes = max(self.memory_bytes, cleaner_memory_bytes(self._server.pid))
        path = self._server.data / "cleaner-offset-checkpoint"
        lines = path.read_text().splitlines()[2:] if path.exists() else []
        return f"{TOPIC} 0 {self._end_offset}" in lines


def cleaner_memory_bytes(broker_pid: int) -> int:
    """The most memory that a child of the broker has had; 0: there is none."""
    most = 0
    for path in Path(f"/proc/{broker_pid}/task").glob("*/children"):
        for pid in path.read_text().split():
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue  # It ended just now.
            peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
            most = max(most, *(peak * 1024 for peak in peaks), 0)
    return most
