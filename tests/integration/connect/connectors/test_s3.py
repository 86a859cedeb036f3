"""S3's sink and source against moto: what is written is read by DuckDB, pyarrow and back by us."""

import gzip
import json
import multiprocessing
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from tests.support.connect_tasks import SourceRig, sink_record, started_sink, started_source
from tests.support.moto_server import REGION, MotoProcess, moto_server

from penstock.connect.connectors.s3.sink import S3SinkConnector, S3SinkTask
from penstock.connect.connectors.s3.source import S3SourceConnector, S3SourceTask
from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.records import SourceRecord
from penstock.connect.values.schema import INT64_SCHEMA, STRING_SCHEMA, struct_schema
from penstock.connect.values.struct import StructValue
from penstock.records.topic_partition import TopicPartition

ROW = struct_schema({"n": INT64_SCHEMA, "city": STRING_SCHEMA}, name="Row")
AT = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoProcess]:
    with moto_server(tmp_path_factory.mktemp("moto")) as process:
        yield process


@pytest.fixture
def bucket(moto: MotoProcess, request: pytest.FixtureRequest) -> str:
    name = f"b-{abs(hash(request.node.name)) % 10**9}"
    client = moto.client("s3")
    client.create_bucket(Bucket=name)
    return name


def config_of(moto: MotoProcess, bucket: str, **more: str) -> dict[str, str]:
    return {
        "s3.bucket.name": bucket,
        "s3.region": REGION,
        "store.url": moto.url,
        "aws.access.key.id": "test",
        "aws.secret.access.key": "test",
        "s3.part.retries": "0",
        "flush.size": "100",
        "format.class": "JsonFormat",
        **{name.replace("_", "."): text for name, text in more.items()},
    }


def objects(moto: MotoProcess, bucket: str) -> dict[str, bytes]:
    client = moto.client("s3")
    listed = client.list_objects_v2(Bucket=bucket).get("Contents", [])
    return {
        one["Key"]: client.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
        for one in listed
    }


def rows(first: int, end: int) -> list[Any]:
    return [
        sink_record(StructValue(ROW, (n, f"city{n % 3}")), n, schema=ROW, timestamp=n)
        for n in range(first, end)
    ]


def stored(config: dict[str, str], records: list[Any]) -> int | None:
    """What the sink may commit after these."""
    task = S3SinkTask()
    started_sink(task, config, [AT])
    task.put(records)
    end = task.pre_commit({AT: records[-1].offset + 1}).get(AT)
    task.stop()
    return end


def read_back(config: dict[str, str], rig: SourceRig | None = None) -> list[SourceRecord]:
    task = S3SourceTask()
    started_source(task, {**config, "s3.poll.interval.ms": "0"}, rig)
    found: list[SourceRecord] = []
    while records := task.poll():
        found += records
    task.stop()
    return found


@pytest.mark.parametrize("form", ["JsonFormat", "AvroFormat", "ParquetFormat"])
def test_what_the_sink_writes_the_source_reads(moto: MotoProcess, bucket: str, form: str) -> None:
    config = config_of(moto, bucket, format_class=f"io.confluent.connect.s3.format.{form}")
    assert S3SinkConnector.validate(config).errors() == {}
    assert stored(config, rows(0, 250)) == 200
    assert len(objects(moto, bucket)) == 2
    found = read_back(config)
    assert [one.value["n"] for one in found] == list(range(200))
    assert {(one.topic, one.partition) for one in found} == {("t", 0)}


def test_pyarrow_and_duckdb_read_the_folders(
    moto: MotoProcess, bucket: str, tmp_path: Path
) -> None:
    config = config_of(
        moto,
        bucket,
        format_class="ParquetFormat",
        flush_size="50",
        partitioner_class="FieldPartitioner",
        partition_field_name="city",
    )
    stored(config, rows(0, 150))
    host = pyarrow.fs.S3FileSystem(
        access_key="test",
        secret_key="test",
        endpoint_override=moto.address,
        scheme="http",
        region=REGION,
    )
    table = pq.read_table(f"{bucket}/topics/t", filesystem=host, partitioning=None)
    assert sorted(table.column("n").to_pylist()) == list(range(148))  # The fiftieth of city0 cuts.
    for name, content in objects(moto, bucket).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    counted = duckdb.sql(
        f"SELECT city, count(*) FROM read_parquet('{tmp_path}/topics/t/*/*.parquet',"
        " hive_partitioning=true) GROUP BY 1 ORDER BY 1"
    ).fetchall()
    assert counted == [("city0", 50), ("city1", 49), ("city2", 49)]


def test_large_objects_are_sent_in_parts(moto: MotoProcess, bucket: str) -> None:
    config = config_of(moto, bucket, s3_part_size=str(5 << 20), flush_size="13")
    texts = ["x" * (1 << 20)] * 13
    stored(config, [sink_record(text, n) for n, text in enumerate(texts)])
    (content,) = objects(moto, bucket).values()
    assert content.count(b"\n") == 13
    head = moto.client("s3").head_object(
        Bucket=bucket, Key="topics/t/partition=0/t+0+0000000000.json"
    )
    assert head["ETag"].strip('"').endswith("-3")
    assert len(read_back(config)) == 13


def test_gzip_is_written_and_read(moto: MotoProcess, bucket: str) -> None:
    config = config_of(moto, bucket, s3_compression_type="gzip")
    stored(config, rows(0, 100))
    ((name, content),) = objects(moto, bucket).items()
    assert name.endswith(".json.gz")
    assert json.loads(gzip.decompress(content).splitlines()[7]) == {"n": 7, "city": "city1"}
    assert len(read_back(config)) == 100


def test_a_bucket_that_is_not_there_is_told_at_the_start(moto: MotoProcess) -> None:
    for connector in (S3SinkConnector(), S3SourceConnector()):
        with pytest.raises(ConnectError, match="nothing-here"):
            connector.start(config_of(moto, "nothing-here"))
    task = S3SinkTask()
    started_sink(task, config_of(moto, "nothing-here", flush_size="1"), [AT])
    with pytest.raises(ConnectError) as refused:
        task.put(rows(0, 1))
    assert not isinstance(refused.value, RetriableConnectError)


def test_a_store_that_goes_away_is_waited_for(tmp_path: Path) -> None:
    with moto_server(tmp_path) as own:
        config = config_of(own, "bucket", flush_size="2")
        own.client("s3").create_bucket(Bucket="bucket")
        task = S3SinkTask()
        started_sink(task, config, [AT])
        own.kill()
        with pytest.raises(RetriableConnectError):
            task.put(rows(0, 2))
        assert task.pre_commit({AT: 2}) == {}
        own.start()
        own.client("s3").create_bucket(Bucket="bucket")
        task.put(rows(0, 2))
        assert task.pre_commit({AT: 2}) == {AT: 2}
        assert len(objects(own, "bucket")) == 1


def _sink_until_killed(config: dict[str, str], first: int, end: int, report: str) -> None:
    """A task as a process: it says after each put how far it may commit."""
    task = S3SinkTask()
    started_sink(task, config, [AT])
    for at in range(first, end, 7):
        task.put(rows(at, min(end, at + 7)))
        done = task.pre_commit({AT: min(end, at + 7)}).get(AT)
        if done is not None:
            _commit(Path(report), done)
    os._exit(0)


def _commit(report: Path, done: int) -> None:
    """All of it or nothing, as a broker takes it: a kill must not leave an empty file."""
    written = report.with_suffix(".new")
    written.write_text(str(done))
    written.replace(report)


def _kill_rounds(moto: MotoProcess, bucket: str, tmp_path: Path, rounds: int, seed: int) -> None:
    config = config_of(
        moto,
        bucket,
        flush_size="10",
        partitioner_class="FieldPartitioner",
        partition_field_name="city",
    )
    dice, report, total = random.Random(seed), tmp_path / "committed", 400
    context = multiprocessing.get_context("fork")
    for number in range(rounds + 1):
        first = int(report.read_text()) if report.exists() else 0
        child = context.Process(target=_sink_until_killed, args=(config, first, total, str(report)))
        child.start()
        if number < rounds:
            child.join(dice.uniform(0.02, 0.25))
            if child.pid is not None and child.is_alive():
                os.kill(child.pid, signal.SIGKILL)
        child.join()
    numbers = [
        json.loads(line)["n"] for one in objects(moto, bucket).values() for line in one.splitlines()
    ]
    done = int(report.read_text())
    assert sorted(numbers) == list(range(len(numbers)))
    assert len(numbers) >= done > 350


def test_each_record_is_there_once_though_the_task_is_killed(
    moto: MotoProcess, bucket: str, tmp_path: Path
) -> None:
    _kill_rounds(moto, bucket, tmp_path, rounds=5, seed=1)


@pytest.mark.long
def test_each_record_is_there_once_after_fifty_kills(
    moto: MotoProcess, bucket: str, tmp_path: Path
) -> None:
    _kill_rounds(moto, bucket, tmp_path, rounds=50, seed=2)
