"""Commands of the pipelines on Spark: pipeline, lake, spark."""
