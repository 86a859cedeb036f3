"""Lets PySpark find the `penstock` data source by itself: it looks into modules named pyspark_*."""
