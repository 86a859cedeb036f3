"""Producing to a topic that checks the schema ids of its records, beside one that does not."""

import json
from collections.abc import Iterator, Mapping
from itertools import count
from urllib.request import Request, urlopen

from tests.support.processes import ServerProcess
from tests.support.registry import RegistryProcess

from bench.plan import Plan, alternate
from bench.report import Goal, Row, throughput_row
from bench.rows.produce import Run
from bench.subjects import Round, Subjects, create_topic, delete_topic, fresh, raw_load

SHAPE = ["--batch-bytes", "65536", "--record-bytes", "1024", "--partitions", "1"]
CHECKED = {"confluent.value.schema.validation": "true"}


def by_id(plan: Plan, subjects: Subjects) -> Iterator[Row]:
    """1 KB records in 64 KB batches, five in flight, one connection."""
    broker = subjects.penstock()
    registry = RegistryProcess(fresh(subjects.directory / "registry"), broker.address)
    broker.settings["confluent.schema.registry.url"] = registry.url
    with broker, registry:
        broker.start()
        registry.start()
        amount = ["--total-bytes", str(plan.small_bytes), "--in-flight", "5"]
        runs = {
            "penstock": _run(broker, registry, amount, CHECKED),
            "unchecked": _run(broker, registry, amount, {}),
        }
        rounds = alternate(runs, rounds=plan.rounds)
    goals = [Goal(beside="unchecked", at_least=0.5)]
    yield throughput_row("produce 64 KB batches, schema ids checked", rounds, goals)


def _run(
    broker: ServerProcess, registry: RegistryProcess, amount: list[str], config: Mapping[str, str]
) -> Run:
    numbers = count()

    def run() -> Round:
        topic = f"bench-{'checked' if config else 'plain'}-{next(numbers):03d}"
        schema = ["--schema-id", str(_register(registry, f"{topic}-value"))]
        create_topic(broker, topic, 1, config)
        try:
            return raw_load(broker, "produce", [*SHAPE, *amount, *schema, "--topic", topic])
        finally:
            delete_topic(broker, topic)

    return run


def _register(registry: RegistryProcess, subject: str) -> int:
    body = json.dumps({"schema": '"bytes"'}).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    with urlopen(
        Request(f"{registry.url}/subjects/{subject}/versions", body, headers), timeout=60
    ) as answer:
        return int(json.load(answer)["id"])
