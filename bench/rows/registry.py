"""The schema registry: schemas by id, new schemas, and a start with many of them.

How many requests a core answers is told by the processor time of the registry's process, so it does
not depend on what else the machine does; the wait of a client does.
"""

import asyncio
import http.client
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.broker import BrokerProcess
from tests.support.processes import HOST
from tests.support.registry import RegistryProcess

from bench.plan import Plan
from bench.report import Goal, Row
from bench.subjects import Subjects
from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer
from penstock.registry.records import schema_record
from penstock.registry.schema import SchemaContent, SchemaVersion

MB = 1_000_000
CONNECTIONS = 16
MEDIA = "application/vnd.schemaregistry.v1+json"
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
_TICKS = os.sysconf("SC_CLK_TCK")


def by_id(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """GET /schemas/ids/{id} from 16 connections that ask one after the other."""
    rates: list[float] = []
    waits_ms: list[float] = []
    seen: list[float] = []
    with _running(subjects) as registry:
        _register(registry, 0)
        for _ in range(plan.rounds + 1):
            cpu_s = _cpu_s(registry.pid)
            began_s = time.perf_counter()
            waits_s = sorted(asyncio.run(_ask_much(registry.port, plan.registry_gets)))
            seen.append(len(waits_s) / (time.perf_counter() - began_s))
            rates.append(len(waits_s) / (_cpu_s(registry.pid) - cpu_s))
            waits_ms.append(waits_s[len(waits_s) * 99 // 100] * 1000)
    yield Row(
        work="registry: GET schema by id, per core",
        unit="requests/s",
        rounds={"penstock": rates[1:]},
        goals=[Goal(beside=None, at_least=4_000)],
    )
    yield Row(
        work=f"registry: GET schema by id, {CONNECTIONS} connections, seen",
        unit="requests/s",
        rounds={"penstock": seen[1:]},
    )
    yield Row(
        work=f"registry: GET schema by id, {CONNECTIONS} connections, p99",
        unit="ms",
        rounds={"penstock": waits_ms[1:]},
        goals=[Goal(beside=None, at_most=10)],
    )


def register(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """POST of new schemas, one after the other on one connection."""
    halves: list[float] = []
    with _running(subjects) as registry:
        for turn in range(plan.rounds + 1):
            first = turn * plan.registrations
            waits_s = sorted(_register(registry, first + n) for n in range(plan.registrations))
            halves.append(waits_s[len(waits_s) // 2] * 1000)
    yield Row(
        work="registry: register a new Avro schema, p50",
        unit="ms",
        rounds={"penstock": halves[1:]},
        goals=[Goal(beside=None, at_most=8)],
    )


def start(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """A process that begins on a topic with many schemas."""
    starts_s: list[float] = []
    memory: list[float] = []
    processor_s: list[float] = []
    with _broker(subjects) as broker:
        broker.start()
        _fill(broker, plan.stored_schemas)
        for _ in range(plan.starts):
            with RegistryProcess(_directory(subjects) / "registry", broker.address) as registry:
                registry.launch()
                starts_s.append(registry.wait_until_ready(timeout_s=300, every_s=0.01))
                processor_s.append(_cpu_s(registry.pid))
                memory.append(registry.rss_peak_bytes() / MB)
                registry.stop()
    count = f"{plan.stored_schemas:,}"
    yield Row(
        work=f"registry: start with {count} schemas",
        unit="s",
        rounds={"penstock": starts_s},
        goals=[Goal(beside=None, at_most=10)],
    )
    yield Row(
        work="registry: the same, processor time",
        unit="s",
        rounds={"penstock": processor_s},
    )
    yield Row(
        work=f"registry: memory with {count} schemas",
        unit="MB",
        rounds={"penstock": memory},
        goals=[Goal(beside=None, at_most=500)],
    )


class _Running:
    """A broker and a registry on it."""

    def __init__(self, subjects: Subjects) -> None:
        self._broker = _broker(subjects)
        self._directory = _directory(subjects)

    def __enter__(self) -> RegistryProcess:
        self._broker.start()
        self._registry = RegistryProcess(self._directory / "registry", self._broker.address)
        self._registry.start()
        return self._registry

    def __exit__(self, *_: object) -> None:
        self._registry.kill()
        self._broker.kill()


def _running(subjects: Subjects) -> _Running:
    return _Running(subjects)


def _broker(subjects: Subjects) -> BrokerProcess:
    return BrokerProcess(_directory(subjects) / "broker", SETTINGS)


def _directory(subjects: Subjects) -> Path:
    made = subjects.directory / "registry"
    made.mkdir(parents=True, exist_ok=True)
    return made


def _schema(number: int) -> str:
    fields = [{"name": f"field{n}", "type": "string", "default": ""} for n in range(8)]
    return json.dumps({"type": "record", "name": f"Order{number}", "fields": fields})


def _register(registry: RegistryProcess, number: int) -> float:
    """Register one; how long it took."""
    connection = http.client.HTTPConnection(HOST, registry.port, timeout=120)
    try:
        connection.connect()
        body = json.dumps({"schema": _schema(number)})
        began_s = time.perf_counter()
        path = f"/subjects/orders-{number}-value/versions"
        connection.request("POST", path, body, {"Content-Type": MEDIA})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        return time.perf_counter() - began_s
    finally:
        connection.close()


def _fill(broker: BrokerProcess, count: int) -> None:
    """As another registry would have left the topic."""
    with Admin(bootstrap_servers=broker.address) as admin:
        compacted = {"cleanup.policy": "compact"}
        admin.create_topics([NewTopic(name="_schemas", partitions=1, configs=compacted)])
    with Producer(
        {"bootstrap.servers": broker.address, "linger.ms": 50, "enable.idempotence": True}
    ) as producer:
        for number in range(count):
            version = SchemaVersion(
                subject=f"orders-{number}-value",
                version=1,
                schema_id=number + 1,
                content=SchemaContent(text=_schema(number)),
            )
            record = schema_record(version)
            producer.send("_schemas", record.value, key=record.key, partition=0)
        producer.flush()


async def _ask_much(port: int, count: int) -> list[float]:
    each = count // CONNECTIONS
    found = await asyncio.gather(*(_ask(port, each) for _ in range(CONNECTIONS)))
    return [wait_s for waits_s in found for wait_s in waits_s]


async def _ask(port: int, count: int) -> list[float]:
    reader, writer = await asyncio.open_connection(HOST, port)
    waits_s = []
    request = f"GET /schemas/ids/1 HTTP/1.1\r\nHost: x\r\nAccept: {MEDIA}\r\n\r\n".encode()
    for _ in range(count):
        began_s = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        waits_s.append(time.perf_counter() - began_s)
    writer.close()
    return waits_s


def _cpu_s(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
