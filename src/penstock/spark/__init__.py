"""The Spark connector: topics as data frames, batch and streaming.

    from penstock.spark import session

    spark = session()
    prices = spark.readStream.format("penstock").option("subscribe", "prices")...

`session` gives a ready SparkSession; `register` adds the format to a session of one's own.
Importing this package costs nothing: PySpark is loaded with the first use of either.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.spark.start.sessions import register, session

__all__ = ["register", "session"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("penstock.spark.start.sessions"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
