"""A topic as a table, in one call: `sync()`.

It puts together the source, the decoding of values and the table; each is explained where it is:
`ranges`, `rows`, `query`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.lake.columns.rows import check_decoding, format_text
from penstock.lake.errors import LakeError
from penstock.lake.query import LakeQuery, checkpoint_of, local_directory, start
from penstock.lake.spec import TableSpec, TopicDecoding, parse_partitioning
from penstock.lake.writing.ranges import RangeSource
from penstock.spark.formats.format import Format

BY_DAY = "date(timestamp)"
RECORDS_PER_BATCH = 4_000_000
EVERY = "10 seconds"

_COLUMNS = "key,value,topic,partition,offset,timestamp"


def sync(
    topic: str,
    *,
    to: str | Path,
    bootstrap: str,
    format: str = "delta",  # noqa: A002  (the word that Spark uses)
    value_format: str | Format = "raw",
    schema: str | None = None,
    key_format: str = "raw",
    on_error: str | None = None,
    dead_letter_topic: str | None = None,
    partition_by: str | Iterable[str] | None = BY_DAY,
    include_headers: bool = False,
    once: bool = False,
    every: str | None = None,
    starting_offsets: str = "earliest",
    max_records_per_batch: int = RECORDS_PER_BATCH,
    group: str | None = None,
    client_settings: Mapping[str, str] | None = None,
    name: str | None = None,
    checkpoint: str | Path | None = None,
    compression: str = "zstd",
    compact_small_files: bool = True,
    file_bytes_max: int = 128 << 20,
    small_files_max: int = 16,
    table_name: str | None = None,
    catalog: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
) -> LakeQuery:
    """Land a topic in the table at `to`, each record once, and keep it up to date.

    `value_format` is raw, string, json, or a format of `penstock.spark.formats`; json takes the
    fields as they come and lets the table follow, or only those of `schema` if one is given, in
    Spark's words (`id long, name string`). Columns widen as far as the table's format lets them.

    A value that cannot be decoded or does not fit the table's columns, or a batch of the topic that
    cannot be read, ends the query (`on_error="fail"`, the default). With `on_error="null"` the
    columns that it does not fit are null and its bytes are in the column `value_undecoded`. With
    `dead_letter_topic` the record goes there, exactly once, with the reason in its headers; of a
    batch that cannot be read only its offsets and the reason. `once` stops when all that is there
    now is written; the next run goes on from there.
    """
    if once and every:
        raise LakeError("`once` and `every` exclude each other")
    if spark is None:
        from penstock.spark import session

        spark = session(name or f"penstock lake {topic}")
    if dead_letter_topic == topic:
        raise LakeError(f"dead_letter_topic is {topic}, which is what is read: choose another")
    wants_headers = include_headers or dead_letter_topic is not None
    options = _source_options(
        topic,
        bootstrap,
        columns=_COLUMNS + (",headers" if wants_headers else ""),
        starting=starting_offsets,
        records=max_records_per_batch,
        group=group,
        tasks=spark.sparkContext.defaultParallelism,
        client=client_settings or {},
        checkpoint=checkpoint_of(local_directory(to), checkpoint),
    )
    spec = TableSpec(
        directory=local_directory(to),
        format=format,
        partition_by=parse_partitioning(partition_by),
        decoding=_decoding(
            _described(spark, value_format, schema),
            value_format,
            key_format=key_format,
            on_error=on_error or ("fail" if dead_letter_topic is None else "dead-letter"),
            source=options,
            dead_letter_topic=dead_letter_topic,
            keeps_headers=include_headers,
        ),
        compression=compression,
        compact_small_files=compact_small_files,
        file_bytes_max=file_bytes_max,
        small_files_max=small_files_max,
        table_name=table_name or f"lake.{topic.replace('.', '_')}",
        catalog=dict(catalog or {}),
    )
    spark.dataSource.register(RangeSource)
    ranges = spark.readStream.format(RangeSource.name()).options(**options).load()
    # Without a pause between batches, a topic that trickles would become a file per record.
    pause = every or (None if once else EVERY)
    return start(ranges, spec, once=once, every=pause, name=name, checkpoint=checkpoint)


def _source_options(
    topic: str,
    bootstrap: str,
    *,
    columns: str,
    starting: str,
    records: int,
    group: str | None,
    tasks: int,
    client: Mapping[str, str],
    checkpoint: Path,
) -> dict[str, str]:
    options = {f"kafka.{name}": value for name, value in client.items()}
    options |= {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": topic,
        "columns": columns,
        "startingOffsets": starting,
        "maxOffsetsPerTrigger": str(records),
        "minPartitions": str(tasks),  # A topic of one partition still uses all cores.
        "groupIdPrefix": "penstock-lake",
        "checkpointLocation": str(checkpoint),
    }
    if "headers" in columns:
        options["includeHeaders"] = "true"
    if group is not None:
        options["kafka.group.id"] = group
    return options


def _described(
    spark: SparkSession, value_format: str | Format, schema: str | None
) -> Format | None:
    """The format with all that only the driver can find out; None: rows.py does it by itself."""
    if schema is not None:
        if value_format != "json":
            raise LakeError("schema goes with value_format='json'; other formats have their own")
        from penstock.spark.formats import Json

        value_format = Json(schema)
    if isinstance(value_format, str):
        return None
    return value_format.bound(spark.createDataFrame([], "value binary"), "value")


def _decoding(
    described: Format | None,
    value_format: str | Format,
    *,
    key_format: str,
    on_error: str,
    source: Mapping[str, str],
    dead_letter_topic: str | None,
    keeps_headers: bool,
) -> TopicDecoding:
    named = value_format if isinstance(value_format, str) else "described"
    decoding = TopicDecoding(
        value_format=named if described is None else "described",
        key_format=key_format,
        on_error=on_error,
        described=format_text(described) if described is not None else None,
        source=source,
        dead_letter_topic=dead_letter_topic,
        keeps_headers=keeps_headers,
    )
    check_decoding(decoding)
    return decoding
