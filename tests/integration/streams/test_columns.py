"""Column expressions mean the same in Python and in Spark: random ones, over random records."""

import math
import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.conftest import IS_LONG
from tests.support.streams_columns import FIELDS, RECORD, random_column, random_record

from penstock.streams.columns.in_python import computing
from penstock.streams.columns.resolve import resolved
from penstock.streams.columns.sql_text import sql_text, sql_type
from penstock.streams.spark.session import EXACT, settings_of
from penstock.streams.values.column_types import declared_type

pytestmark = pytest.mark.timeout(900)
AT_ONCE = 40
NAMES = {"key": "key", "value": "value", "timestamp": "timestamp"}


# The last two have sums and products that Spark would put in another order, and words whose upper
# and lower case are not each other's reverse.
@pytest.mark.parametrize("seed", range(200) if IS_LONG else (0, 1, 2, 3, 139, 168))
def test_python_and_spark_compute_the_same(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    records = [random_record(chance) for _ in range(60)]
    kinds = [chance.choice(("long", "double", "string", "boolean")) for _ in range(AT_ONCE)]
    columns = [random_column(chance, kind, chance.randint(1, 4)) for kind in kinds]
    typed = [resolved(column, RECORD) for column in columns]
    assert [str(one.type) for one in typed] == kinds
    schema = f"key STRING, value {sql_type(declared_type(FIELDS))}, timestamp BIGINT"
    rows = spark.createDataFrame([(r.key, r.value, r.timestamp_ms) for r in records], schema)
    texts = [sql_text(one, NAMES) for one in typed]
    with settings_of(spark, EXACT):
        found = rows.selectExpr(*(f"{text} AS c{at}" for at, text in enumerate(texts))).collect()
    for at, one in enumerate(typed):
        compute = computing(one)
        for record, row in zip(records, found, strict=True):
            assert _same(compute(record), row[at]), (texts[at], record, compute(record), row[at])


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    return type(one) is type(other) and bool(one == other)
