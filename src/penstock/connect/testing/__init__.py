"""A test kit for authors of connectors: tasks with real converters, without broker and Spark.

`SourceRun` runs the tasks of a source and keeps what a worker would keep: records in topics, and
offsets. `SinkRun` brings records to a sink from topics that are lists. Both can crash at any point,
start again where the last commit was, and show what came twice or not at all.
"""

from penstock.connect.testing.checks import refused_settings
from penstock.connect.testing.sink_run import SinkRun
from penstock.connect.testing.source_run import SourceRun

__all__ = ["SinkRun", "SourceRun", "refused_settings"]
