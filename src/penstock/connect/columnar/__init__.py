"""The lane for volume: tasks that move Arrow columns instead of one record at a time.

A columnar task is a resident task like any other (docs/adr/0037-columnar-lane.md). It has the same
line to its worker, the same offsets and the same transactions; only what lies between the connector
and the brokers is columns, encoded and decoded by `penstock.spark.columns`.
"""
