"""What a Spark session has to know while a stage is planned."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RULES = "org.apache.spark.sql.catalyst.optimizer."
# Rules that take an expression for another one. Sums and products in another order overflow
# elsewhere, and of "ß" upper and lower case are not each other's reverse.
EXACT = {
    "spark.sql.optimizer.excludedRules": (
        f"{_RULES}ReorderAssociativeOperator,{_RULES}SimplifyCaseConversionExpressions"
    )
}


@contextmanager
def settings_of(spark: "SparkSession", settings: Mapping[str, str]) -> Iterator[None]:
    """Have the session go by settings for as long as it is entered.

    A query that starts meanwhile keeps them: it has a copy of the session.
    """
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)
