"""HDFS's sink and source against a NameNode and a DataNode: there and back, and a node away."""

from pathlib import Path

import pytest
from tests.support.connect_tasks import sink_record, started_sink, started_source
from tests.support.hadoop import hdfs_cluster
from tests.support.waiting import eventually

from penstock.connect.connectors.hdfs.sink import HdfsSinkConnector, HdfsSinkTask
from penstock.connect.connectors.hdfs.source import HdfsSourceTask
from penstock.connect.errors.kinds import RetriableConnectError
from penstock.connect.values.schema import INT64_SCHEMA, struct_schema
from penstock.connect.values.struct import StructValue
from penstock.records.topic_partition import TopicPartition

AT = TopicPartition("t", 0)
ROW = struct_schema({"n": INT64_SCHEMA})


def rows(first: int, end: int) -> list[object]:
    return [sink_record(StructValue(ROW, (n,)), n, schema=ROW) for n in range(first, end)]


@pytest.mark.long
def test_a_topic_goes_to_hdfs_and_back_though_a_node_goes_away(tmp_path: Path) -> None:
    with hdfs_cluster(tmp_path) as (url, data_node):
        config = {
            "hdfs.url": f"{url}/kafka",
            "hdfs.user": "someone",
            "format.class": "ParquetFormat",
            "flush.size": "100",
            "hdfs.poll.interval.ms": "0",
        }
        HdfsSinkConnector().start(config)
        for _ in range(2):  # The second is a replay, and changes nothing.
            sink = HdfsSinkTask()
            started_sink(sink, config, [AT])
            sink.put(rows(0, 250))  # type: ignore[arg-type]
            assert sink.pre_commit({AT: 250}) == {AT: 200}
        data_node.kill()
        with pytest.raises(RetriableConnectError):
            sink.put(rows(250, 300))  # type: ignore[arg-type]
        assert sink.pre_commit({AT: 300}) == {AT: 200}
        data_node.start(timeout_s=300)
        eventually(lambda: sink.pre_commit({AT: 300}) == {AT: 300}, timeout_s=120, every_s=1.0)
        source = HdfsSourceTask()
        started_source(source, {**config, "record.batch.max.size": "1000"})
        assert [one.value["n"] for one in source.poll() or ()] == list(range(300))
