"""Log aggregation: the logs of all services in one table, and an alert when one is in trouble.

Two pipelines over one topic, in one Spark session: `log-archive` keeps every line in a Delta table,
a folder for each day; `log-alerts` writes an alert for each minute in which a service logged three
errors or more.

    penstock pipeline run examples/log_alerts.py
    penstock console-producer --bootstrap-server localhost:9092 --topic logs \\
        --reader-property parse.key=true < examples/samples/logs.txt
    penstock console-consumer --bootstrap-server localhost:9092 --topic alerts --from-beginning
"""

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.pipelines import Table, Topic, pipeline

ERRORS_MAX = 2
LAKE = os.environ.get("LAKE", "lake")
LOGS = Topic("logs", value="service STRING, level STRING, text STRING, at TIMESTAMP", partitions=2)


@pipeline(inputs=LOGS, output=Table(f"{LAKE}/logs", partition_by=["date(at) as day"]))
def log_archive(logs: DataFrame) -> DataFrame:
    """Every line, with where it came from, so that it can be found again in the topic."""
    return logs.select("service", "level", "text", "at", "partition", "offset")


@pipeline(inputs=LOGS, output=Topic("alerts", key="service", partitions=1))
def log_alerts(logs: DataFrame) -> DataFrame:
    """Services with too many errors in a minute; a line up to 30 seconds late still counts."""
    minute = F.window("at", "1 minute")
    # Counted, not filtered: a line of any level tells the time, which closes the minute.
    is_error = F.col("level").isin("ERROR", "FATAL")
    last_text = F.max_by("text", F.when(is_error, F.col("at")))
    return (
        logs.withWatermark("at", "30 seconds")
        .groupBy("service", minute.alias("minute"))
        .agg(F.count_if(is_error).alias("errors"), last_text.alias("last_text"))
        .where(F.col("errors") > ERRORS_MAX)
        .select("service", F.col("minute.start").alias("minute"), "errors", "last_text")
    )
