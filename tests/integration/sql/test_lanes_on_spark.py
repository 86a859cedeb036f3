"""Lanes on Spark: the way really taken, with the results of the test driver, also by turns.

A query whose source cannot make rows of its records writes nothing unless its lane does. Between
the runs of one query the way changes, so each goes on from the other's checkpoint.
"""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.integration.spark.crashing import consumed
from tests.support.broker import BrokerProcess
from tests.support.streams_spark import Feed, application, create
from tests.unit.sql.planning.rig import planned

from penstock.streams import SerdeError, StreamRecord, StreamsTopology

pytestmark = pytest.mark.timeout(900)
FIRST_MS = time.time_ns() // 10**12 * 10**6
COLUMNS = "K STRING KEY, N BIGINT, U STRING"
QUERIES = {
    "kept": "CREATE STREAM O WITH (kafka_topic='{out}') AS"
    " SELECT K, UCASE(U) AS U, N * 2 AS M FROM I WHERE N % 3 <> 0;",
    "counted": "CREATE TABLE O WITH (kafka_topic='{out}') AS"
    " SELECT K, COUNT(*) AS C, SUM(N) AS S FROM I GROUP BY K;",
    "final": "CREATE TABLE O WITH (kafka_topic='{out}') AS SELECT K, COUNT(*) AS C FROM I"
    " WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY K EMIT FINAL;",
}


def refuse(record: StreamRecord, partition: int, offset: int) -> StreamRecord:
    raise SerdeError("no record goes step by step")


def in_lane_alone(topology: StreamsTopology) -> StreamsTopology:
    nodes = tuple(
        replace(node, intake=refuse) if node.kind == "source" else node for node in topology.nodes
    )
    return replace(topology, nodes=nodes)


def step_by_step(topology: StreamsTopology) -> StreamsTopology:
    return replace(topology, nodes=tuple(replace(node, lane=None) for node in topology.nodes))


def rows(number: int) -> list[tuple[str, dict[str, Any], int]]:
    """A share of the records: keys, values, times that grow."""
    return [
        (f"k{at % 7}", {"N": at, "U": f"user {at % 5} é"}, FIRST_MS + 500 * at)
        for at in range(100 * number, 100 * number + 100)
    ]


def wanted(name: str) -> Any:
    """What three shares make: a stream's rows, or the last of each key."""
    records = [one for number in range(3) for one in rows(number)]
    if name == "kept":
        return sorted(
            (key, row["U"].upper(), row["N"] * 2) for key, row, _ in records if row["N"] % 3
        )
    keyed = [
        (key if name == "counted" else (key, at // 10_000), row["N"]) for key, row, at in records
    ]
    totals: dict[Any, Any] = {}
    for key, number in keyed:
        count, total = totals.get(key, (0, 0))
        totals[key] = count + 1, total + number
    if name == "counted":
        return totals
    last = max(at for _, _, at in records) // 10_000
    return sorted((key, count) for (key, at), (count, _) in totals.items() if at < last)


def found(name: str, records: list[Any]) -> Any:
    told = [(one.key(), json.loads(one.value())) for one in records]
    if name == "kept":
        return sorted((key.decode(), row["U"], row["M"]) for key, row in told)
    if name == "counted":
        return {key.decode(): (row["C"], row["S"]) for key, row in told}
    return sorted((key[:-8].decode(), row["C"]) for key, row in told)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_goes_on_from_the_other_ways_checkpoint(
    name: str, spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    source, out = f"lanes-{name}", f"lanes-{name}-out"
    create(shared_broker.address, source, out)
    script = (
        f"CREATE STREAM I ({COLUMNS}) WITH (kafka_topic='{source}', value_format='JSON');"
        + QUERIES[name].format(out=out)
    )
    topology, feed = planned(script), Feed(shared_broker.address)
    for number, way in enumerate((step_by_step, in_lane_alone, step_by_step)):
        for key, row, at_ms in rows(number):
            feed.put(source, key, json.dumps(row), at_ms)
        feed.flush()
        made = application(
            spark, way(topology), shared_broker.address, tmp_path, f"q-{name}",
            modules=(__name__,),
        )  # fmt: skip
        made.run_once()
        assert made.failure is None
    assert found(name, consumed(shared_broker.address, out)) == wanted(name)
