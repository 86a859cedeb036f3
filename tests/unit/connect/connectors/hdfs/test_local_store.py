"""A folder as a store: whole files alone, in order, and the sink and source on it."""

from io import BytesIO
from pathlib import Path

import pytest
from tests.support.connect_tasks import sink_record, started_sink, started_source

from penstock.connect.connectors.hdfs.local_store import LocalStore
from penstock.connect.connectors.hdfs.sink import HdfsSinkConnector, HdfsSinkTask
from penstock.connect.connectors.hdfs.source import HdfsSourceConnector, HdfsSourceTask
from penstock.connect.errors.kinds import ConnectError
from penstock.records.topic_partition import TopicPartition

AT = TopicPartition("t", 0)


def test_files_are_listed_in_order_without_what_is_written_aside(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for name in ("a/2", "a/10", "a/b/1", "a/.2.77", "_logs/x"):
        store.put(name, BytesIO(name.encode()))
    assert list(store.folders("a")) == ["a", "a/b"]
    assert list(store.folders("")) == ["", "a", "a/b"]
    assert list(store.names("a")) == ["a/10", "a/2"]
    assert list(store.names("a", "a/10")) == ["a/2"]
    with store.get("a/b/1") as file:
        assert file.read() == b"a/b/1"


def test_a_file_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    for content in (b"one", b"two"):
        store.put("x/y", BytesIO(content))
    assert [one.name for one in (tmp_path / "x").iterdir()] == ["y"]
    assert (tmp_path / "x" / "y").read_bytes() == b"two"


def test_what_the_disk_refuses_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ConnectError, match="failed"):
        LocalStore(str(tmp_path)).put("file/x", BytesIO(b""))
    with pytest.raises(ConnectError, match="failed"):
        LocalStore(str(tmp_path)).get("nothing")


def test_a_topic_goes_to_files_and_back(tmp_path: Path) -> None:
    config = {"hdfs.url": f"file://{tmp_path}", "format.class": "JsonFormat", "flush.size": "2"}
    HdfsSinkConnector().start(config)
    sink = HdfsSinkTask()
    started_sink(sink, config, [AT])
    sink.put([sink_record({"n": n}, n) for n in range(5)])
    assert sink.pre_commit({AT: 5}) == {AT: 4}
    assert (
        tmp_path / "topics/t/partition=0/t+0+0000000002.json"
    ).read_text() == '{"n":2}\n{"n":3}\n'
    source = HdfsSourceTask()
    started_source(source, {**config, "hdfs.poll.interval.ms": "0"})
    assert [one.value["n"] for one in source.poll() or ()] == [0, 1, 2, 3]


def test_addresses_that_cannot_be_used_are_refused() -> None:
    config = {"format.class": "JsonFormat", "flush.size": "2"}
    for url, word in (("hdfs://n:8020", "webhdfs"), ("ftp://n", "Must be"), ("", "Must be")):
        for kind in (HdfsSinkConnector, HdfsSourceConnector):
            found = kind.validate({**config, "hdfs.url": url}).errors()
            assert word in found["hdfs.url"][0]
