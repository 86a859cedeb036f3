"""Dead letters of a pipeline: kept apart from the good rows, and written in the same transaction.

`decode(..., on_error="dead-letter", dead_letter=DeadLetter("orders.dead"))` gives every row a
column `dead_letter`: null for a good one. What is done with the rows then decides how dead letters
are written:

*One pass.* As long as a query only maps and filters rows, and keeps the column, `encode` writes a
dead letter in the place of its row: one query, one write, each record read once. A condition on
the decoded value drops dead letters unless it says `or dead_letter is not null`.

*Any query.* `with_dead_letters(encode(work(good(decoded)), ...), decoded)` puts the dead letters
beside the results, whatever the query does (windows, joins): one query, one write; the input is
read a second time for the dead letters.

Both go through one write with a topic per row. A task of the exactly-once sink writes all of its
rows in one transaction, whatever their topics, so results and dead letters become visible together
or not at all, and a batch that is replayed writes neither twice.

*A sink that is no topic* (a lake table) has no part in that transaction. Then `dead_letters`
gives the rows for a query of their own, with a checkpoint of its own: each of the two is exactly
once, though one may be ahead of the other. Or write both in `foreachBatch`, where a crash between
the two writes replays the batch: a table write that knows the batch's number is not doubled, dead
letters may be.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from penstock.schemas.errors import SchemaError

DEAD_LETTER = "dead_letter"
HEADERS_TYPE = t.ArrayType(
    t.StructType([t.StructField("key", t.StringType()), t.StructField("value", t.BinaryType())])
)
DEAD_LETTER_TYPE = t.StructType(
    [
        t.StructField("topic", t.StringType()),
        t.StructField("key", t.BinaryType()),
        t.StructField("value", t.BinaryType()),
        t.StructField("headers", HEADERS_TYPE),
    ]
)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Where records go that cannot be decoded, and the name of the pipeline that says so."""

    topic: str
    pipeline: str | None = None

    def __post_init__(self) -> None:
        if not self.topic:
            raise SchemaError("dead letters need the name of a topic")


def good(decoded: DataFrame) -> DataFrame:
    """The rows that could be decoded."""
    _need_column(decoded)
    return decoded.where(f.col(DEAD_LETTER).isNull()).drop(DEAD_LETTER)


def dead_letters(decoded: DataFrame) -> DataFrame:
    """The records that could not, ready for a topic: topic, key, value, headers."""
    _need_column(decoded)
    return decoded.where(f.col(DEAD_LETTER).isNotNull()).select(f"{DEAD_LETTER}.*")


def with_dead_letters(
    output: DataFrame, decoded: DataFrame, *, topic: str | None = None
) -> DataFrame:
    """Results (key, value, ...) and dead letters as one frame, with a topic for each row.

    `topic` is where results go, unless `output` has a column that says it.
    """
    if DEAD_LETTER in output.columns:
        raise SchemaError(f"the output has a column {DEAD_LETTER} itself; begin with good(decoded)")
    bare = dead_letters(decoded)
    columns = {
        "topic": topic_of(output, topic),
        "key": _or_null(output, "key", "binary"),
        "value": f.col("value").cast("binary"),
        "headers": headers_of(output),
    }
    extra = {}
    if "partition" in output.columns:
        columns["partition"] = f.col("partition").cast("int")
        extra["partition"] = f.lit(None).cast("int")  # The key decides, as for any record.
    results = output.select(*(column.alias(name) for name, column in columns.items()))
    return results.unionByName(bare.withColumns(extra) if extra else bare)


def in_place_of_rows(encoded: DataFrame, topic: str | None) -> DataFrame:
    """Every row with a dead letter replaced by it."""
    is_good = f.col(DEAD_LETTER).isNull()
    chosen = {
        "topic": topic_of(encoded, topic),
        "key": _or_null(encoded, "key", "binary"),
        "value": f.col("value"),
        "headers": headers_of(encoded),
    }
    columns = [
        f.when(is_good, column).otherwise(f.col(f"{DEAD_LETTER}.{name}")).alias(name)
        for name, column in chosen.items()
    ]
    if "partition" in encoded.columns:
        columns.append(f.when(is_good, f.col("partition").cast("int")).alias("partition"))
    return encoded.select(*columns)


def topic_of(frame: DataFrame, topic: str | None) -> Column:
    """The topic of a row that is no dead letter."""
    if topic is not None:
        return f.lit(topic)
    if "topic" not in frame.columns:
        raise SchemaError(
            "beside dead letters every row needs its topic: give topic=..., or a column topic"
        )
    return f.col("topic")


def headers_of(frame: DataFrame) -> Column:
    """The headers of a row, never null: a null array is slow on its way to a sink."""
    none = f.array().cast(HEADERS_TYPE)
    return f.coalesce(f.col("headers"), none) if "headers" in frame.columns else none


def _or_null(frame: DataFrame, name: str, kind: str) -> Column:
    return (f.col(name) if name in frame.columns else f.lit(None)).cast(kind)


def _need_column(decoded: DataFrame) -> None:
    if DEAD_LETTER not in decoded.columns:
        raise SchemaError(
            f"there is no column {DEAD_LETTER}; decode with on_error='dead-letter' first"
        )
