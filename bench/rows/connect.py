"""Connect's worker on our broker: ours on Spark, in both lanes, beside Apache's.

A round is a new connector over the same file, from its PUT until its offset is the end of the file.
What counts is the processor time of the whole worker meanwhile: with Spark's virtual machine and
all Python processes in ours. Apache's worker is left out where its jars are not to be had.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.support.connect import ConnectProcess
from tests.support.connect_golden import ApacheConnectProcess
from tests.support.outside import REPORT, missing
from tests.support.processes import ServerProcess
from tests.support.waiting import eventually

from bench.plan import Plan, alternate
from bench.process_tree import tree_cpu_s
from bench.report import OURS, Goal, Row
from bench.subjects import Subjects, create_topic, fresh
from penstock.client.producer.bulk import BulkProducer

COLUMNS = "columns"  # Our worker in the columnar lane.
ORDINARY = "raw"  # The column of the table for the other lane, where Apache has no such connector.
PEER = "kafka"  # The column of the table: Apache Kafka's own worker.
PLUGINS = "connect-file-4.3.1"
LINE_BYTES = 100
_START_S, _RUN_S = 900, 900
_NUMBERS = count()
_SINK_TOPIC = "to-be-drained"
_OBJECTS = 4
_SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "name", "type": "string", "optional": True},
        {"field": "price", "type": "double", "optional": True},
        {"field": "paid", "type": "boolean", "optional": True},
    ],
}
_CONVERTERS = {
    "String": {"value.converter": "org.apache.kafka.connect.storage.StringConverter"},
    "JSON with schemas": {"value.converter": "org.apache.kafka.connect.json.JsonConverter"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One round of one worker."""

    records: int
    seconds: float
    cpu_s: float


def source(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Lines of a file, each a record, in a transaction with the position behind it."""
    lines = plan.connect_records
    with ExitStack() as running:
        server = running.enter_context(subjects.penstock())
        server.start()
        folder = fresh(subjects.directory / "connect")
        file = folder / "in.txt"
        file.write_text("".join(f"{n:0{LINE_BYTES - 1}d}\n" for n in range(lines)))
        workers = started(running, server, folder, PLUGINS if subjects.kafka_jars else None)
        for name, converter in _CONVERTERS.items():
            runs: dict[str, Callable[[], Played]] = {
                who: partial(_play, server, worker, file, lines, {**converter, **lane})
                for who, (worker, lane) in _in_lanes(workers).items()
            }
            rounds = alternate(runs, rounds=plan.rounds)
            yield from _rows(f"file source, {LINE_BYTES} B records, exactly once, {name}", rounds)


def sink(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A topic into lines of a file, from its first record until the file has the last."""
    records = plan.connect_records
    with ExitStack() as running:
        server = running.enter_context(subjects.penstock())
        server.start()
        folder = fresh(subjects.directory / "connect")
        create_topic(server, _SINK_TOPIC, 1)
        _fill(server, records)
        workers = started(running, server, folder, PLUGINS if subjects.kafka_jars else None)
        runs: dict[str, Callable[[], Played]] = {
            who: partial(_drain, worker, folder, records, lane)
            for who, (worker, lane) in _in_lanes(workers).items()
        }
        rounds = alternate(runs, rounds=plan.rounds)
        yield from _rows(f"file sink, {LINE_BYTES} B records, String", rounds)


def objects(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """Structs with their schemas as JSON into Parquet files, and those back into a topic.

    Apache Kafka has no connector for files of tables, so our lanes stand beside each other alone.
    """
    records = plan.connect_records
    with ExitStack() as running:
        server = running.enter_context(subjects.penstock())
        server.start()
        folder = fresh(subjects.directory / "connect")
        create_topic(server, _SINK_TOPIC, 1)
        _fill(server, records, _struct)
        workers = started(running, server, folder, None)
        both = _in_lanes(workers).items()
        stored = {who: fresh(folder / f"tables-{who}") for who, _ in both}
        out: dict[str, Callable[[], Played]] = {
            who: partial(_store, server, worker, stored[who], records, lane)
            for who, (worker, lane) in both
        }
        rounds = alternate(out, rounds=plan.rounds)
        yield from _rows("Parquet sink, JSON with schemas", rounds)
        back: dict[str, Callable[[], Played]] = {
            who: partial(_restore, server, worker, stored[OURS] / "0", records, lane)
            for who, (worker, lane) in both
        }
        rounds = alternate(back, rounds=plan.rounds)
        yield from _rows("Parquet source, exactly once, JSON with schemas", rounds)


def _in_lanes(
    workers: dict[str, ConnectProcess],
) -> dict[str, tuple[ConnectProcess, dict[str, str]]]:
    """Our worker twice, once in each lane, and Apache's."""
    found = {who: (worker, dict[str, str]()) for who, worker in workers.items() if who == PEER}
    ours = workers[OURS]
    return {
        OURS: (ours, {"penstock.lane": "ordinary"}),
        COLUMNS: (ours, {"penstock.lane": "columnar"}),
        **found,
    }


def _fill(server: ServerProcess, records: int, value: Callable[[int], bytes] | None = None) -> None:
    make = value or (lambda n: f"{n:0{LINE_BYTES - 1}d}".encode())
    with BulkProducer({"bootstrap.servers": server.address}) as producer:
        for number in range(records):
            producer.send(_SINK_TOPIC, make(number))
        left = producer.flush(_RUN_S)
        assert not left and not producer.failures, producer.failures[:1]


def _struct(number: int) -> bytes:
    payload = {"id": number, "name": f"customer {number % 1000}", "price": number / 8, "paid": True}
    return json.dumps({"schema": _SCHEMA, "payload": payload}, separators=(",", ":")).encode()


def _drain(worker: ConnectProcess, folder: Path, records: int, lane: dict[str, str]) -> Played:
    name = f"drain-{next(_NUMBERS)}"
    out = folder / f"{name}.txt"
    strings = _CONVERTERS["String"]
    config = {"connector.class": "FileStreamSink", "topics": _SINK_TOPIC, "file": str(out)}
    size = records * LINE_BYTES
    return _timed(
        worker,
        name,
        {**config, **strings, **lane},
        lambda: out.exists() and out.stat().st_size >= size,
        records,
    )


def _store(
    server: ServerProcess, worker: ConnectProcess, folder: Path, records: int, lane: dict[str, str]
) -> Played:
    name = f"store-{next(_NUMBERS)}"
    place = folder / "0"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    size = records // _OBJECTS
    config = {
        "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
        "topics": _SINK_TOPIC,
        "hdfs.url": f"file://{place}",
        "format.class": "ParquetFormat",
        "flush.size": str(size),
        **_CONVERTERS["JSON with schemas"],
    }
    return _timed(
        worker,
        name,
        {**config, **lane},
        lambda: len([*place.rglob("*+*.parquet")]) >= _OBJECTS,
        records,
    )


def _restore(
    server: ServerProcess, worker: ConnectProcess, place: Path, records: int, lane: dict[str, str]
) -> Played:
    name = f"restore-{next(_NUMBERS)}"
    create_topic(server, name, 1)
    config = {
        "connector.class": "io.confluent.connect.hdfs.HdfsSourceConnector",
        "hdfs.url": f"file://{place}",
        "hdfs.poll.interval.ms": "500",
        "format.class": "ParquetFormat",
        "mode": "GENERIC",
        "topic.regex.list": f"{name}:.*",
        "record.batch.max.size": "2000",
        **_CONVERTERS["JSON with schemas"],
    }
    last = max(path.name for path in place.rglob("*+*.parquet"))
    end = {"lastFileRead": last, "fileOffset": records // _OBJECTS}
    return _timed(worker, name, {**config, **lane}, lambda: _offset(worker, name) == end, records)


def _timed(
    worker: ConnectProcess,
    name: str,
    config: dict[str, str],
    is_done: Callable[[], bool],
    records: int,
) -> Played:
    assert worker.process is not None
    pid = worker.process.pid
    begun_s, begun_cpu_s = perf_counter(), tree_cpu_s(pid)
    status, told = worker.ask("PUT", f"/connectors/{name}/config", config)
    assert status == 201, told
    eventually(is_done, timeout_s=_RUN_S, every_s=0.1)
    played = Played(
        records=records,
        seconds=perf_counter() - begun_s,
        cpu_s=tree_cpu_s(pid) - begun_cpu_s,
    )
    worker.ask("DELETE", f"/connectors/{name}")
    return played


def started(
    running: ExitStack, server: ServerProcess, folder: Path, plugins: str | None
) -> dict[str, ConnectProcess]:
    """Our worker, and Apache's with these plug-ins where they are to be had."""
    workers = {OURS: ConnectProcess(folder / OURS, server.address)}
    if plugins and not missing(plugins):
        jars = REPORT.parent / "java" / plugins
        workers[PEER] = ApacheConnectProcess(folder / PEER, server.address, jars)
    for who, worker in workers.items():
        names = ("config", "offset", "status")
        worker.settings |= {f"{name}.storage.topic": f"{who}-{name}" for name in names}
        worker.settings["group.id"] = who
        if who == PEER:
            # Its plug-ins are on the class path; looking through each jar takes minutes.
            del worker.settings["plugin.path"]
            worker.settings["plugin.discovery"] = "service_load"
        running.enter_context(worker)
        worker.launch()
        eventually(worker.answers, timeout_s=_START_S, every_s=1)
    return workers


def _play(
    server: ServerProcess,
    worker: ConnectProcess,
    file: Path,
    lines: int,
    converter: dict[str, str],
) -> Played:
    name = f"lines-{next(_NUMBERS)}"
    create_topic(server, name, 1)
    config = {"connector.class": "FileStreamSource", "file": str(file), "topic": name, **converter}
    end = {"position": file.stat().st_size}
    return _timed(worker, name, config, lambda: _offset(worker, name) == end, lines)


def _offset(worker: ConnectProcess, name: str) -> dict[str, Any] | None:
    status, told = worker.ask("GET", f"/connectors/{name}/offsets")
    offsets = told["offsets"] if status == 200 else []
    return offsets[0]["offset"] if offsets else None


def _rows(work: str, rounds: dict[str, list[Played]]) -> Iterator[Row]:
    """Both lanes beside Apache's worker, each with its goal."""
    for lane, who, least in (("ordinary", OURS, 0.7), ("columnar", COLUMNS, 5.0)):
        shown = {OURS: rounds[who]}
        if PEER in rounds:
            shown[PEER] = rounds[PEER]
        elif who == COLUMNS:
            shown[ORDINARY] = rounds[OURS]
        named = f"connect: {work}, {lane} lane"
        yield Row(
            work=f"{named}, of the worker's processor time",
            unit="records/CPU s",
            rounds={
                name: [one.records / one.cpu_s for one in runs] for name, runs in shown.items()
            },
            goals=[Goal(beside=PEER, at_least=least)] if PEER in rounds else [],
            note="" if PEER in rounds else "without Apache's worker",
        )
        yield Row(
            work=named,
            unit="records/s",
            rounds={
                name: [one.records / one.seconds for one in runs] for name, runs in shown.items()
            },
        )
