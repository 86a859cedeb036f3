"""From a declaration to running queries: read the inputs, call the function, write the outputs.

This is where declarations meet Spark; the session of `penstock.queries` looks after the
queries that run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ConfigError
from penstock.pipelines.declaration import ONCE, DeadLetters, Pipeline, Table, Topic
from penstock.pipelines.files import module_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.queries.query import Query
    from penstock.spark.formats import Format

_POOL = "spark.scheduler.pool"


def start_query(
    spark: "SparkSession",
    declared: Pipeline,
    query: str,
    *,
    settings: Mapping[str, str],
    checkpoint: Path,
    once: bool,
) -> "Query":
    """Start one query of a pipeline, in a pool of its own so that none starves the others."""
    _carry_by_value(declared)
    spark.sparkContext.setLocalProperty(_POOL, query)
    output = declared.queries[query]
    group = declared.group_of(query)
    every = None if once or declared.trigger == ONCE else declared.trigger
    options = {**_kafka(settings), "delivery": declared.delivery}
    if isinstance(output, DeadLetters):
        frame = dead_letters_of(
            spark, output, settings=settings, group=group, checkpoint=checkpoint
        )
        records, mode = frame, "append"
    else:
        frame = transformed(spark, declared, settings=settings, group=group, checkpoint=checkpoint)
        if isinstance(output, Table):
            return _to_table(frame, output, query, checkpoint=checkpoint, every=every)
        records, mode = encoded(frame, output), declared.mode
        options |= {"topic": output.name, **output.options}
    if mode == "update":
        from penstock.pipelines.update_sink import UpdateSink, write_batches

        spark.dataSource.register(UpdateSink)
        writer = records.writeStream.foreachBatch(write_batches(options))
    else:
        writer = records.writeStream.format("penstock").options(**options)
    writer = writer.outputMode(mode).queryName(query)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=every).start()


def transformed(
    spark: "SparkSession",
    declared: Pipeline,
    *,
    settings: Mapping[str, str],
    group: str,
    checkpoint: Path,
) -> "DataFrame":
    """The function's answer for the declared inputs."""
    frames = {
        name: topic_frame(spark, topic, settings=settings, group=group, checkpoint=checkpoint)
        for name, topic in declared.inputs.items()
    }
    answer = declared.transform(**frames)
    if not hasattr(answer, "writeStream"):
        kind = type(answer).__name__
        raise ConfigError(
            f"pipeline {declared.name}: its function returned {kind}, not a data frame"
        )
    return answer


def topic_frame(
    spark: "SparkSession",
    topic: Topic,
    *,
    settings: Mapping[str, str],
    group: str,
    checkpoint: Path,
) -> "DataFrame":
    """A topic's records as rows: the value's columns, and Kafka's own beside them."""
    options = {**_read_options(topic, settings), **_unreadable(topic)}
    if topic.as_table:
        frame = spark.read.format("penstock").options(**{**options, **topic.options}).load()
        return decoded(newest_of_each_key(frame), topic)
    return decoded(_stream(spark, topic, options, group, checkpoint), topic)


def dead_letters_of(
    spark: "SparkSession",
    output: DeadLetters,
    *,
    settings: Mapping[str, str],
    group: str,
    checkpoint: Path,
) -> "DataFrame":
    """The records of an input that cannot be decoded, as they were, with the reason in headers."""
    from penstock.spark.formats import dead_letters

    # A batch that cannot be read is a row without value, whose headers tell of it.
    told = {"includeHeaders": "true", "onUnreadableBatch": "null"}
    options = {**_read_options(output.source, settings), **told}
    frame = _stream(spark, output.source, options, group, checkpoint)
    return dead_letters(_with_dead_letters(frame, output.source))


def _stream(
    spark: "SparkSession",
    topic: Topic,
    options: Mapping[str, str],
    group: str,
    checkpoint: Path,
) -> "DataFrame":
    own = {"kafka.group.id": group, "checkpointLocation": str(checkpoint)}
    chosen = {**options, **own, **topic.options}
    return spark.readStream.format("penstock").options(**chosen).load()


def _read_options(topic: Topic, settings: Mapping[str, str]) -> dict[str, str]:
    return {
        **_kafka(settings),
        "subscribe": topic.name,
        "startingOffsets": topic.starting,
        "kafka.isolation.level": "read_committed",
    }


def _unreadable(topic: Topic) -> dict[str, str]:
    """What becomes of batches that cannot be read: the same as of records."""
    if topic.dead_letter is not None:
        return {"onUnreadableBatch": "skip"}  # The dead letters' own query tells of them.
    if topic.on_error == "fail":
        return {}
    return {"onUnreadableBatch": "skip" if topic.as_table else "null"}


def _format_of(topic: Topic) -> "Format":
    from penstock.spark.formats import Json

    assert topic.value is not None
    return Json(topic.value) if isinstance(topic.value, str) else topic.value


def _with_dead_letters(frame: "DataFrame", topic: Topic) -> "DataFrame":
    from penstock.spark.formats import DeadLetter, decode

    assert topic.dead_letter is not None
    letter = DeadLetter(topic.dead_letter)
    return decode(frame, _format_of(topic), on_error="dead-letter", dead_letter=letter)


def newest_of_each_key(records: "DataFrame") -> "DataFrame":
    """A compacted topic as the table it stands for; a key whose last value is null is gone."""
    from pyspark.sql import functions as f

    whole = f.struct(*(f.col(name) for name in records.columns))
    newest = records.groupBy("key").agg(f.max_by(whole, "offset").alias("newest"))
    return newest.select("newest.*").where("value IS NOT NULL")


def decoded(frame: "DataFrame", topic: Topic) -> "DataFrame":
    """The columns of the value in place of its bytes; a column of Kafka's own yields to it."""
    from penstock.spark.formats import decode, good

    if topic.value is None:
        return frame
    if topic.dead_letter is not None:
        rows = good(_with_dead_letters(frame, topic))
    else:
        rows = decode(frame, _format_of(topic), on_error=topic.on_error)
    inner = rows.select("value.*").columns
    kafkas = [name for name in rows.columns if name not in (*inner, "value")]
    return rows.select("value.*", *kafkas)


def encoded(frame: "DataFrame", topic: Topic) -> "DataFrame":
    """Key and value for the sink: JSON if no format is declared.

    A frame with a column `value`, to a topic declared without key and format, goes as it is.
    """
    from pyspark.sql import functions as f

    from penstock.spark.formats import Json, encode

    if topic.key is None and topic.value is None and "value" in frame.columns:
        return frame
    if topic.key is not None and topic.key not in frame.columns:
        raise ConfigError(
            f"topic {topic.name}: key={topic.key!r} is no column of the rows, which have "
            f"{', '.join(frame.columns)}"
        )
    chosen = topic.value if topic.value is not None and not isinstance(topic.value, str) else Json()
    if topic.key is None:
        rows = frame.select(f.struct("*").alias("value"))
        return encode(rows, chosen, schema_topic=topic.name)
    key = f.col(topic.key).cast("string").alias("key")
    rows = frame.select(key, f.struct("*").alias("value"))
    return encode(rows, chosen, schema_topic=topic.name)


def _to_table(
    frame: "DataFrame", output: Table, query: str, *, checkpoint: Path, every: str | None
) -> "Query":
    from penstock.lake import table

    return table(
        frame,
        to=output.path,
        format=output.format,
        partition_by=list(output.partition_by) or None,
        merge_on=list(output.upsert) or None,
        merge_order_by=output.order_by,
        merge_delete_when=output.delete_when,
        once=every is None,
        every=every,
        name=query,
        checkpoint=checkpoint,
    )


def _kafka(settings: Mapping[str, str]) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in settings.items()}


def _carry_by_value(declared: Pipeline) -> None:
    """What the file defines travels with the plan: no worker has the file."""
    from pyspark.cloudpickle import register_pickle_by_value

    module = module_of(declared)
    if module is not None and module.__name__ != "__main__":
        register_pickle_by_value(module)  # type: ignore[no-untyped-call]
