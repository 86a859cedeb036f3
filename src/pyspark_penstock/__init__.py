"""Lets any Spark session find `format("penstock")` by itself.

PySpark looks into every top-level module whose name begins with pyspark_ for a `DefaultSource`.
"""

from penstock.spark.data_source import PenstockDataSource as DefaultSource

__all__ = ["DefaultSource"]
