"""Stages on Spark: a query for each, tasks in a stateful operator, pages in its state store."""
