"""What a session of ours adds to PySpark's writers: a mode, any thread, and whose checkpoint it is.

And how it starts the Python processes behind them.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.spark.crashing import committed
from tests.support.broker import BrokerProcess
from tests.support.spark_topics import Topic

from penstock.spark.options import OptionError
from penstock.spark.source.shared_variables import WRITTEN_BY_SPARK, shared_variables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(spark: "SparkSession", broker: BrokerProcess, topic: str) -> Any:
    frame = spark.sql("SELECT 'v' AS value").write.format("penstock")
    return frame.options(**{"kafka.bootstrap.servers": broker.address, "topic": topic})


def copy(
    spark: "SparkSession", broker: BrokerProcess, checkpoint: Path, *, source: str, to: str
) -> Any:
    """A stream from one topic to another that stops at the end of what is there."""
    server = {"kafka.bootstrap.servers": broker.address}
    read = spark.readStream.format("penstock").options(**server, startingOffsets="earliest")
    rows = read.option("subscribe", source).load().select("value")
    writer = rows.writeStream.format("penstock").options(**server, topic=to)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)


@pytest.mark.parametrize("mode", [None, "error", "errorifexists", "append"])
def test_a_write_without_a_mode_appends_as_to_sparks_kafka_sink(
    spark: "SparkSession", shared_broker: BrokerProcess, mode: str | None
) -> None:
    topic = f"written-{mode}"
    for _ in range(2):
        write(spark, shared_broker, topic).save(mode=mode)
    assert committed(shared_broker.address, topic) == {b"v": 2}


@pytest.mark.parametrize("mode", ["overwrite", "ignore"])
def test_a_topic_is_neither_overwritten_nor_passed_over(
    spark: "SparkSession", shared_broker: BrokerProcess, mode: str
) -> None:
    with pytest.raises(Exception, match=f"(?i){mode}"):
        write(spark, shared_broker, "never").mode(mode).save()


def test_the_mode_of_other_formats_stays_what_it_was(spark: "SparkSession", tmp_path: Path) -> None:
    frame = spark.range(1)
    frame.write.format("json").save(str(tmp_path / "there"))
    with pytest.raises(Exception, match="PATH_ALREADY_EXISTS"):
        frame.write.save(str(tmp_path / "there"), format="json")
    frame.write.save(str(tmp_path / "there"), format="json", mode="overwrite")


def test_any_thread_may_start_a_query(
    spark: "SparkSession", shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    Topic(shared_broker.port, "threads-in").put([b"a", b"b"])
    writer = copy(spark, shared_broker, tmp_path / "c", source="threads-in", to="threads-out")
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: writer.start().awaitTermination()).result()
    assert committed(shared_broker.address, "threads-out") == {b"a": 1, b"b": 1}


def test_a_checkpoint_of_another_query_is_refused_before_either_had_a_batch(
    spark: "SparkSession", shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    """The first query finds an empty topic: it leaves its id in the checkpoint, and no offsets."""
    mine = Topic(shared_broker.port, "owner-mine")
    theirs = Topic(shared_broker.port, "owner-theirs")
    checkpoint = tmp_path / "c"
    first = copy(spark, shared_broker, checkpoint, source=mine.name, to="owner-out")
    first.start().awaitTermination()
    theirs.put([b"theirs"])
    with pytest.raises(OptionError, match="another query: that one reads owner-mine, this one ow"):
        copy(spark, shared_broker, checkpoint, source=theirs.name, to="owner-out").start()
    mine.put([b"mine"])
    again = copy(spark, shared_broker, checkpoint, source="owner-mine,owner-theirs", to="owner-out")
    again.start().awaitTermination()
    assert committed(shared_broker.address, "owner-out") == {b"mine": 1, b"theirs": 1}


def test_tasks_are_forked_from_a_daemon_of_one_thread_that_has_loaded_what_they_need(
    spark: "SparkSession",
) -> None:
    def look(_: object) -> tuple[list[str], int, list[str]]:
        import os
        import sys
        from pathlib import Path

        loaded = sorted({"pandas", "pyarrow", "penstock.spark.sink.sink"} & set(sys.modules))
        parent = Path("/proc", str(os.getppid()))
        command = parent.joinpath("cmdline").read_text().split("\0")
        return loaded, len(list(parent.joinpath("task").iterdir())), command

    loaded, threads, command = spark.sparkContext.parallelize([0], 1).map(look).first()
    assert "penstock.spark.start.worker_daemon" in command
    assert loaded == ["pandas", "penstock.spark.sink.sink", "pyarrow"]
    assert threads == 1


def test_python_processes_use_the_compiled_pyspark_and_not_the_zip(spark: "SparkSession") -> None:
    import pyspark

    def look(_: object) -> tuple[str, str]:
        import sys

        import pyspark

        return pyspark.__file__, sys.executable

    found, executable = spark.sparkContext.parallelize([0], 1).map(look).first()
    assert found == pyspark.__file__
    assert not executable.endswith(".sh")


def test_what_queries_share_has_all_its_names_before_one_of_them_starts(
    spark: "SparkSession", shared_broker: BrokerProcess
) -> None:
    shared = shared_variables(spark)
    assert shared is not None
    for name in WRITTEN_BY_SPARK:
        shared.pop(name, None)
    rows = spark.readStream.format("rate").load().selectExpr("'v' AS value")
    refused = rows.writeStream.format("penstock").option("topic", "never")
    with pytest.raises(Exception, match="checkpointLocation must be specified"):
        refused.option("kafka.bootstrap.servers", shared_broker.address).start()
    assert set(WRITTEN_BY_SPARK) <= set(shared)
