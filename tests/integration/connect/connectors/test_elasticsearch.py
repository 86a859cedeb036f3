"""The Elasticsearch sink against a real OpenSearch, and a node that goes away."""

import multiprocessing
import os
import random
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from opensearchpy import OpenSearch
from tests.support.connect_tasks import SinkRig, sink_record, started_sink
from tests.support.opensearch import OpenSearchProcess, opensearch_server
from tests.support.processes import HOST, free_port

from penstock.connect.connectors.elasticsearch.sink import ElasticsearchSinkTask
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.values.schema import INT64_SCHEMA, STRING_SCHEMA, struct_schema
from penstock.connect.values.struct import StructValue
from penstock.records.topic_partition import TopicPartition

AT = TopicPartition("t", 0)
ROW = struct_schema({"n": INT64_SCHEMA, "city": STRING_SCHEMA})


@pytest.fixture(scope="module")
def server() -> Iterator[OpenSearchProcess]:
    with opensearch_server() as process:
        yield process


@pytest.fixture(scope="module")
def search(server: OpenSearchProcess) -> Iterator[Any]:
    client = OpenSearch(hosts=[server.url], timeout=60)
    yield client
    client.close()


def task_on(
    url: str, *, tolerates: bool = False, **more: str
) -> tuple[ElasticsearchSinkTask, SinkRig]:
    task = ElasticsearchSinkTask()
    config = {"connection.url": url, "schema.ignore": "true", "read.timeout.ms": "60000"}
    config |= {name.replace("_", "."): text for name, text in more.items()}
    return task, started_sink(task, config, [AT], tolerates=tolerates)


def documents(search: Any, index: str) -> dict[str, Any]:
    search.indices.refresh(index=index)
    found = search.search(index=index, body={"size": 5000, "query": {"match_all": {}}})
    return {one["_id"]: one["_source"] for one in found["hits"]["hits"]}


def test_what_comes_twice_is_there_once(server: OpenSearchProcess, search: Any) -> None:
    task, _ = task_on(
        server.url, key_ignore="true", batch_size="300", connection_compression="true"
    )
    for first in (0, 500):
        task.put([sink_record({"n": n}, n, topic="twice") for n in range(first, first + 1000)])
    assert len(documents(search, "twice")) == 1500


def test_the_newest_record_of_a_key_stays(server: OpenSearchProcess, search: Any) -> None:
    task, _ = task_on(server.url, behavior_on_null_values="delete")
    old = [sink_record({"n": n}, n, topic="keyed", key=f"k{n % 3}") for n in range(9)]
    task.put([*old, sink_record(None, 9, topic="keyed", key="k0")])
    task.put(old)  # A replay that ends before the delete.
    assert documents(search, "keyed") == {"k1": {"n": 7}, "k2": {"n": 8}}


def test_an_upsert_keeps_other_fields(server: OpenSearchProcess, search: Any) -> None:
    task, _ = task_on(server.url, write_method="UPSERT")
    task.put([sink_record({"a": 1, "b": 1}, 0, topic="up", key="k")])
    task.put([sink_record({"b": 2}, 1, topic="up", key="k")])
    assert documents(search, "up") == {"k": {"a": 1, "b": 2}}


def test_a_mapping_is_made_of_the_schema(server: OpenSearchProcess, search: Any) -> None:
    task, _ = task_on(server.url, schema_ignore="false", key_ignore="true")
    task.put([sink_record(StructValue(ROW, (1, "Bonn")), 0, topic="Mapped", schema=ROW)])
    found = search.indices.get_mapping(index="mapped")["mapped"]["mappings"]["properties"]
    assert found["n"] == {"type": "long"}
    assert found["city"]["fields"]["keyword"]["type"] == "keyword"


def test_documents_that_do_not_fit_are_told_apart_from_the_others(
    server: OpenSearchProcess, search: Any
) -> None:
    records = [sink_record({"n": n}, n, topic="mixed") for n in range(3)]
    records[1] = sink_record({"n": {"not": "a number"}}, 1, topic="mixed")
    task, _ = task_on(server.url, key_ignore="true")
    with pytest.raises(DataError, match="mixed-0 at 1: "):
        task.put(records)
    task, rig = task_on(server.url, key_ignore="true", tolerates=True)
    task.put(records)
    assert [offset for offset, _ in rig.reported] == [1]
    assert sorted(documents(search, "mixed")) == ["mixed+0+0", "mixed+0+2"]


def test_the_next_node_is_asked_where_one_is_away(server: OpenSearchProcess, search: Any) -> None:
    gone = f"http://{HOST}:{free_port()}"
    task, rig = task_on(f"{gone},{server.url}", key_ignore="true")
    with pytest.raises(RetriableConnectError, match="cannot be reached"):
        task.put([sink_record({"n": 1}, 0, topic="nodes")])
    assert rig.timeout_ms == 100
    task.put([sink_record({"n": 1}, 0, topic="nodes")])
    assert len(documents(search, "nodes")) == 1
    alone, _ = task_on(gone, key_ignore="true", max_retries="0")
    with pytest.raises(ConnectError, match="1 times in a row"):
        alone.put([sink_record({"n": 1}, 0, topic="nodes")])


def _put_all(url: str, end: int) -> None:
    task, _ = task_on(url, key_ignore="true", batch_size="20")
    task.put([sink_record({"n": n}, n, topic="killed") for n in range(end)])
    os._exit(0)


def _kill_rounds(server: OpenSearchProcess, search: Any, rounds: int) -> None:
    dice, context = random.Random(3), multiprocessing.get_context("fork")
    for number in range(rounds + 1):
        child = context.Process(target=_put_all, args=(server.url, 400))
        child.start()
        if number < rounds:
            child.join(dice.uniform(0.02, 0.3))
            if child.pid is not None and child.is_alive():
                os.kill(child.pid, signal.SIGKILL)
        child.join()
    assert sorted(one["n"] for one in documents(search, "killed").values()) == list(range(400))


def test_each_record_is_there_once_though_the_task_is_killed(
    server: OpenSearchProcess, search: Any
) -> None:
    _kill_rounds(server, search, 3)


@pytest.mark.long
def test_each_record_is_there_once_after_fifty_kills(
    server: OpenSearchProcess, search: Any
) -> None:
    _kill_rounds(server, search, 50)
