"""A topic as a table: landed, resumed, grown, refused, and read by the engines people have."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import polars
import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tests.integration.lake.topics import create, send, sync_command
from tests.support.broker import BrokerProcess
from tests.support.disk import small_disk
from tests.unit.lake.reading import iceberg_table, rows_of

from penstock import lake
from penstock.lake.errors import LakeError, TableBusy
from penstock.lake.spec import TableSpec

ALL_FORMATS = pytest.mark.parametrize("kind", ["delta", "iceberg", "parquet"])

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def topic(shared_broker: BrokerProcess, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[-60:]
    create(shared_broker, name)
    return name


@pytest.fixture
def land(shared_broker: BrokerProcess, spark: SparkSession, topic: str, tmp_path: Path) -> Any:
    def run(kind: str, **more: Any) -> None:
        given = {"to": tmp_path / "table", "value_format": "json", "once": True, **more}
        query = lake.sync(topic, bootstrap=shared_broker.address, format=kind, spark=spark, **given)
        query.awaitTermination()

    return run


def rows(tmp_path: Path, kind: str, topic: str) -> list[dict[str, Any]]:
    spec = TableSpec(directory=str(tmp_path / "table"), format=kind, table_name=f"lake.{topic}")
    return sorted(rows_of(spec), key=lambda row: row["n"])


@ALL_FORMATS
def test_a_topic_is_landed_resumed_and_its_new_fields_followed(
    land: Any,
    shared_broker: BrokerProcess,
    spark: SparkSession,
    topic: str,
    tmp_path: Path,
    kind: str,
) -> None:
    send(shared_broker, topic, ({"n": n, "at": {"x": n}} for n in range(50)))
    land(kind, max_records_per_batch=20)
    send(shared_broker, topic, ({"n": n, "name": str(n)} for n in range(50, 60)))
    land(kind)
    found = rows(tmp_path, kind, topic)
    assert [row["n"] for row in found] == list(range(60))
    assert found[7]["at"] == {"x": 7}
    assert found[7]["name"] is None
    assert found[55]["name"] == "55"
    assert {(row["topic"], row["partition"]) for row in found} <= {(topic, 0), (topic, 1)}
    check_engines(spark, tmp_path / "table", kind, topic)


def check_engines(spark: SparkSession, table: Path, kind: str, topic: str) -> None:
    """The sum of 0..59 by whatever can read the format."""
    files = f"{table}/**/*.parquet"
    if kind == "delta":
        from deltalake import DeltaTable

        dataset = DeltaTable(table).to_pyarrow_dataset()
        sums = {
            "duckdb": duckdb.from_arrow(dataset).sum("n").fetchall()[0][0],
            "polars": polars.scan_delta(str(table)).select(polars.sum("n")).collect().item(),
        }
    elif kind == "iceberg":
        spec = TableSpec(directory=str(table), format=kind, table_name=f"lake.{topic}")
        scan = iceberg_table(spec).scan()
        sums = {
            "duckdb": duckdb.from_arrow(scan.to_arrow()).sum("n").fetchall()[0][0],
            "polars": scan.to_polars().select(polars.sum("n")).item(),
        }
    else:
        sums = {
            "spark": spark.read.parquet(str(table)).agg(f.sum("n")).collect()[0][0],
            "duckdb": duckdb.sql(f"SELECT sum(n) FROM '{files}'").fetchall()[0][0],
            "polars": polars.scan_parquet(
                files,
                hive_partitioning=True,
                # Files from before a field was there lack its column.
                missing_columns="insert",
                extra_columns="ignore",
            )
            .select(polars.sum("n"))
            .collect()
            .item(),
        }
    assert sums == dict.fromkeys(sums, sum(range(60)))


def test_an_incompatible_change_stops_the_query_and_loses_nothing(
    land: Any, shared_broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    send(shared_broker, topic, [{"n": 1}])
    land("delta")
    send(shared_broker, topic, [{"n": "two"}])
    with pytest.raises(LakeError, match=r"column n is int64 in the table and .*brings string"):
        land("delta")
    assert [row["n"] for row in rows(tmp_path, "delta", topic)] == [1]
    with pytest.raises(LakeError, match="column n"):
        land("delta")  # The record is still to be landed, so it stops there again.


def test_a_bad_record_is_named_or_kept_aside(
    land: Any, shared_broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    send(shared_broker, topic, [{"n": 1}, b"oops"])
    with pytest.raises(LakeError, match=rf"offset \d of {topic}-\d cannot be decoded: .*not JSON"):
        land("delta")
    land("delta", on_error="null")
    from deltalake import DeltaTable

    found = DeltaTable(tmp_path / "table").to_pyarrow_table().to_pylist()
    assert {row["n"]: row["value_undecoded"] for row in found} == {1: None, None: b"oops"}


def test_a_full_disk_stops_the_query_and_room_lets_it_go_on(
    land: Any, shared_broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    send(shared_broker, topic, ({"n": n, "text": os.urandom(600).hex()} for n in range(2000)))
    with small_disk(tmp_path / "small", size_bytes=4 << 20) as disk:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes((4 << 20) - (600 << 10)))
        place = {"to": disk / "table", "checkpoint": tmp_path / "checkpoint"}
        with pytest.raises(LakeError, match="is full"):
            land("delta", **place)
        ballast.unlink()
        land("delta", **place)
        spec = TableSpec(directory=str(disk / "table"), format="delta")
        assert sorted(row["n"] for row in rows_of(spec)) == list(range(2000))


def test_a_table_has_one_writer(
    shared_broker: BrokerProcess, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    place = {"to": tmp_path / "table", "bootstrap": shared_broker.address, "spark": spark}
    query = lake.sync(topic, **place)
    try:
        with pytest.raises(TableBusy, match="has a writer already"):
            lake.sync(topic, **place)
    finally:
        query.stop()
    lake.sync(topic, once=True, **place).awaitTermination()


def test_updates_replace_the_row_of_their_key(
    shared_broker: BrokerProcess, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    counted = (
        spark.readStream.format("penstock")
        .option("kafka.bootstrap.servers", shared_broker.address)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(f.get_json_object(f.col("value").cast("string"), "$.k").alias("k"))
        .groupBy("k")
        .count()
    )
    for sent in (["a", "b", "a"], ["b", None, "c"]):
        send(shared_broker, topic, ({"k": k} for k in sent))
        lake.table(counted, to=tmp_path / "table", merge_on=["k"], once=True).awaitTermination()
    spec = TableSpec(directory=str(tmp_path / "table"), format="delta")
    found = {row["k"]: row["count"] for row in rows_of(spec)}
    assert found == {"a": 2, "b": 2, "c": 1, None: 1}
    assert len(rows_of(spec)) == 4


def test_the_command_shows_progress_and_stops_in_good_order(
    shared_broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    send(shared_broker, topic, ({"n": n} for n in range(30)))
    process = sync_command(
        shared_broker,
        topic,
        tmp_path / "table",
        *("--value-format", "json", "--every", "100 milliseconds", "--master", "local[2]"),
        env=os.environ,
    )
    try:
        assert process.stdout is not None
        seen = next(line for line in process.stdout if "rows/s" in line)
        assert "30 rows" in seen
        assert "lag 0" in seen
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, said
    assert "stopped after 30 rows" in said
    assert [row["n"] for row in rows(tmp_path, "delta", topic)] == list(range(30))


@pytest.mark.long
def test_the_command_says_that_sparks_process_was_killed_and_the_next_run_goes_on(
    shared_broker: BrokerProcess, topic: str, land: Any, tmp_path: Path
) -> None:
    send(shared_broker, topic, ({"n": n} for n in range(30)))
    options = ("--value-format", "json", "--every", "100 milliseconds", "--master", "local[2]")
    process = sync_command(
        shared_broker, topic, tmp_path / "table", *options, env={**os.environ, "COLUMNS": "200"}
    )
    try:
        assert process.stdout is not None
        assert next(line for line in process.stdout if "rows/s" in line)
        for one in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # Python's processes come and go.
                if one.name() == "java":
                    one.kill()
        said, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 1, said
    assert "Spark's process ended unexpectedly" in said
    assert "Traceback" not in said
    send(shared_broker, topic, ({"n": n} for n in range(30, 40)))
    land("delta")
    assert [row["n"] for row in rows(tmp_path, "delta", topic)] == list(range(40))
