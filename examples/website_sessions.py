"""Website activity: clicks become visits.

A visit is a row of clicks of one person with less than 30 minutes between them. It is written once,
when 30 minutes (by the clicks' own time) and another 10 for late ones have passed without a click.

    penstock pipeline run examples/website_sessions.py
    penstock console-producer --bootstrap-server localhost:9092 --topic clicks \\
        --reader-property parse.key=true < examples/samples/clicks.txt
    penstock console-consumer --bootstrap-server localhost:9092 --topic visits --from-beginning
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.pipelines import Topic, pipeline

CLICKS = Topic("clicks", value="person STRING, page STRING, at TIMESTAMP", partitions=2)
VISITS = Topic("visits", key="person", partitions=2)


@pipeline(inputs=CLICKS, output=VISITS)
def website_sessions(clicks: DataFrame) -> DataFrame:
    """Each visit with its length, its pages in order, and whether it ended in a purchase."""
    visit = F.session_window("at", "30 minutes")
    in_order = F.array_sort(F.collect_list(F.struct("at", "page")))
    return (
        clicks.withWatermark("at", "10 minutes")
        .groupBy("person", visit.alias("visit"))
        .agg(in_order.alias("clicks"), F.max("at").alias("ended"))
        .select(
            "person",
            F.col("visit.start").alias("began"),
            (F.unix_timestamp("ended") - F.unix_timestamp("visit.start")).alias("seconds"),
            F.col("clicks.page").alias("pages"),
            F.array_contains("clicks.page", "/thanks").alias("bought"),
        )
    )
