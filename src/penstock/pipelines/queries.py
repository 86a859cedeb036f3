"""From a declaration to running queries: read the inputs, call the function, write the outputs.

This is where declarations meet Spark; what happens to a query afterwards is the supervisor's.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import ConfigError
from penstock.pipelines.declaration import ONCE, Pipeline, Table, Topic
from penstock.pipelines.files import module_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.formats import Format

_POOL = "spark.scheduler.pool"


class Query(Protocol):
    """What the supervisor asks of a running query; PySpark's own and that of a lake table."""

    @property
    def id(self) -> str: ...
    @property
    def isActive(self) -> bool: ...  # noqa: N802  (PySpark's names)
    @property
    def recentProgress(self) -> list[Any]: ...  # noqa: N802
    def exception(self) -> Exception | None: ...
    def stop(self) -> None: ...


def start_query(
    spark: "SparkSession",
    declared: Pipeline,
    query: str,
    *,
    settings: Mapping[str, str],
    checkpoint: Path,
    once: bool,
) -> Query:
    """Start one query of a pipeline, in a pool of its own so that none starves the others."""
    _carry_by_value(declared)
    spark.sparkContext.setLocalProperty(_POOL, query)
    output = declared.queries[query]
    frame = transformed(spark, declared, settings=settings, group=declared.group_of(query))
    every = None if once or declared.trigger == ONCE else declared.trigger
    if isinstance(output, Table):
        return _to_table(frame, output, query, checkpoint=checkpoint, every=every)
    writer = encoded(frame, output).writeStream.format("penstock")
    options = {**_kafka(settings), "topic": output.name, "delivery": declared.delivery}
    writer = writer.options(**options, **output.options)
    writer = writer.outputMode(declared.mode).queryName(query)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=every).start()


def transformed(
    spark: "SparkSession", declared: Pipeline, *, settings: Mapping[str, str], group: str
) -> "DataFrame":
    """The function's answer for the declared inputs."""
    frames = {
        name: topic_frame(spark, topic, settings=settings, group=group)
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
    spark: "SparkSession", topic: Topic, *, settings: Mapping[str, str], group: str
) -> "DataFrame":
    """A topic's records as rows: the value's columns, and Kafka's own beside them."""
    options = {
        **_kafka(settings),
        "subscribe": topic.name,
        "startingOffsets": topic.starting,
        "kafka.isolation.level": "read_committed",
    }
    if topic.as_table:
        frame = spark.read.format("penstock").options(**options, **topic.options).load()
        return decoded(newest_of_each_key(frame), topic)
    options["kafka.group.id"] = group
    frame = spark.readStream.format("penstock").options(**options, **topic.options).load()
    return decoded(frame, topic)


def newest_of_each_key(records: "DataFrame") -> "DataFrame":
    """A compacted topic as the table it stands for; a key whose last value is null is gone."""
    from pyspark.sql import functions as f

    whole = f.struct(*(f.col(name) for name in records.columns))
    newest = records.groupBy("key").agg(f.max_by(whole, "offset").alias("newest"))
    return newest.select("newest.*").where("value IS NOT NULL")


def decoded(frame: "DataFrame", topic: Topic) -> "DataFrame":
    """The columns of the value in place of its bytes; a column of Kafka's own yields to it."""
    from penstock.spark.formats import Json, decode

    if topic.value is None:
        return frame
    chosen: Format = Json(topic.value) if isinstance(topic.value, str) else topic.value
    rows = decode(frame, chosen, on_error=topic.on_error, dead_letter=topic.dead_letter)
    inner = rows.select("value.*").columns
    kafkas = [name for name in rows.columns if name not in (*inner, "value")]
    return rows.select("value.*", *kafkas)


def encoded(frame: "DataFrame", topic: Topic) -> "DataFrame":
    """Key and value for the sink; without a format a frame that has a value is taken as it is."""
    from pyspark.sql import functions as f

    from penstock.spark.formats import encode

    if topic.value is not None and not isinstance(topic.value, str):
        return encode(frame, topic.value, key=topic.key)
    if topic.key is None and topic.value is None and "value" in frame.columns:
        return frame
    if topic.key is not None and topic.key not in frame.columns:
        raise ConfigError(
            f"topic {topic.name}: key={topic.key!r} is no column of the rows, which have "
            f"{', '.join(frame.columns)}"
        )
    value = f.to_json(f.struct(*frame.columns)).cast("binary").alias("value")
    if topic.key is None:
        return frame.select(value)
    return frame.select(f.col(topic.key).cast("string").cast("binary").alias("key"), value)


def _to_table(
    frame: "DataFrame", output: Table, query: str, *, checkpoint: Path, every: str | None
) -> Query:
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
