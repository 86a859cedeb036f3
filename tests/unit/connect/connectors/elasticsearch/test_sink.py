"""The sink's batches, retries and bad documents, against a cluster that answers as it is told."""

from typing import Any

import pytest
from tests.support.connect_tasks import SinkRig, sink_record, started_sink

from penstock.connect.connectors.elasticsearch.sink import (
    ElasticsearchSinkConnector,
    ElasticsearchSinkTask,
)
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.values.schema import INT64_SCHEMA, struct_schema
from penstock.connect.values.struct import StructValue
from penstock.records.topic_partition import TopicPartition

CONFIG = {"connection.url": "http://nowhere:9200", "key.ignore": "true", "schema.ignore": "true"}
MALFORMED = {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "no"}}
BUSY = {"status": 429, "error": {"type": "rejected_execution_exception", "reason": "full"}}


class Cluster:
    """Answers of bulk calls by the offset in the id; `away` calls fail first."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.answers: dict[str, list[dict[str, Any]]] = {}
        self.indexes: list[str] = []
        self.away = 0

    def bulk(self, content: bytes) -> list[dict[str, Any]]:
        if self.away:
            self.away -= 1
            raise RetriableConnectError("away")
        ids = [
            line.split('"_id":"')[1].split('"')[0] for line in content.decode().splitlines()[::2]
        ]
        self.calls.append(ids)
        return [{"index": self._answer(one)} for one in ids]

    def _answer(self, name: str) -> dict[str, Any]:
        waiting = self.answers.get(name)
        return waiting.pop(0) if waiting else {"status": 201}

    def ensure_index(self, name: str, mapping: dict[str, Any]) -> None:
        self.indexes.append(name)

    def close(self) -> None:
        return


def task_on(
    cluster: Cluster, *, tolerates: bool = False, **more: str
) -> tuple[ElasticsearchSinkTask, SinkRig]:
    task = ElasticsearchSinkTask()
    config = {**CONFIG, **{name.replace("_", "."): text for name, text in more.items()}}
    rig = started_sink(task, config, [TopicPartition("t", 0)], tolerates=tolerates)
    task._client = cluster  # type: ignore[assignment]
    return task, rig


RECORDS = [sink_record({"n": n}, n) for n in range(5)]


def test_a_call_has_as_many_records_and_bytes_as_it_may() -> None:
    for more in ({"batch_size": "2"}, {"bulk_size_bytes": "250"}):
        cluster = Cluster()
        task, _ = task_on(cluster, **more)
        task.put(RECORDS)
        assert [len(call) for call in cluster.calls] == [2, 2, 1]


def test_a_cluster_that_is_away_is_tried_again_with_longer_pauses_and_then_fails() -> None:
    cluster = Cluster()
    task, rig = task_on(cluster, max_retries="2", retry_backoff_ms="10")
    cluster.away = 100
    pauses = []
    for _ in range(2):
        with pytest.raises(RetriableConnectError):
            task.put(RECORDS)
        pauses.append(rig.timeout_ms)
    assert pauses == [10, 20]
    with pytest.raises(ConnectError, match="3 times in a row") as failed:
        task.put(RECORDS)
    assert not isinstance(failed.value, RetriableConnectError)
    cluster.away = 0
    task.put(RECORDS)
    cluster.away = 1
    with pytest.raises(RetriableConnectError):
        task.put(RECORDS)


def test_lines_that_were_refused_for_now_are_sent_again() -> None:
    cluster = Cluster()
    task, _ = task_on(cluster)
    cluster.answers["t+0+3"] = [BUSY]
    with pytest.raises(RetriableConnectError, match="full"):
        task.put(RECORDS)
    task.put(RECORDS)
    assert len(cluster.calls) == 2


def test_a_malformed_document_ends_the_task_by_name() -> None:
    cluster = Cluster()
    task, _ = task_on(cluster)
    cluster.answers["t+0+3"] = [MALFORMED]
    with pytest.raises(DataError, match="t-0 at 3: mapper_parsing_exception"):
        task.put(RECORDS)


@pytest.mark.parametrize("word", ["IGNORE", "WARN"])
def test_a_malformed_document_is_left_out_if_that_is_wanted(word: str) -> None:
    cluster = Cluster()
    task, _ = task_on(cluster, behavior_on_malformed_documents=word)
    cluster.answers["t+0+3"] = [MALFORMED]
    task.put(RECORDS)


def test_a_malformed_document_is_put_aside_where_that_is_tolerated() -> None:
    cluster = Cluster()
    task, rig = task_on(cluster, tolerates=True)
    cluster.answers["t+0+3"] = [MALFORMED]
    task.put([*RECORDS, sink_record("no document", 5)])
    assert [offset for offset, _ in rig.reported] == [5, 3]


def test_what_the_server_forbids_ends_the_task() -> None:
    cluster = Cluster()
    task, _ = task_on(cluster, tolerates=True)
    cluster.answers["t+0+0"] = [{"status": 403, "error": {"type": "security_exception"}}]
    with pytest.raises(ConnectError, match="security_exception"):
        task.put(RECORDS)


def test_an_index_is_made_of_the_schema_once() -> None:
    cluster = Cluster()
    task, _ = task_on(cluster, schema_ignore="false")
    schema = struct_schema({"n": INT64_SCHEMA})
    task.put([sink_record(StructValue(schema, (n,)), n, schema=schema) for n in range(3)])
    assert cluster.indexes == ["t"]
    other, _ = task_on(Cluster(), schema_ignore="false")
    with pytest.raises(DataError, match="no schema"):
        other.put(RECORDS)


def test_all_errors_are_told_at_once() -> None:
    config = {
        "connection.url": "localhost",
        "connection.username": "me",
        "batch.size": "0",
        "write.method": "UPSERT",
        "key.ignore": "true",
        "behavior.on.null.values": "DELETE",
        "behavior.on.malformed.documents": "CRY",
    }
    assert set(ElasticsearchSinkConnector.validate(config).errors()) == {
        "connection.url",
        "connection.username",
        "batch.size",
        "write.method",
        "behavior.on.null.values",
        "behavior.on.malformed.documents",
    }
    assert ElasticsearchSinkConnector.validate(CONFIG).errors() == {}
