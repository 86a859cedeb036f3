"""Change data capture: a table in the lake that follows a table in a database.

The topic holds changes as Debezium writes them: what the row was before, what it is after, and
whether it was created, updated or deleted. The Delta table has one row for each customer, as the
database has it now.

    penstock pipeline run examples/changes_to_table.py
    penstock console-producer --bootstrap-server localhost:9092 --topic customers.changes \\
        --reader-property parse.key=true < examples/samples/customer_changes.txt
    python -c "import polars; print(polars.read_delta('lake/customers'))"
"""

import os

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.pipelines import Table, Topic, pipeline

LAKE = os.environ.get("LAKE", "lake")
ROW = "STRUCT<id: LONG, name: STRING, city: STRING>"
CHANGES = Topic(
    "customers.changes",
    value=f"op STRING, before {ROW}, after {ROW}, ts_ms LONG",
    partitions=1,  # The changes of one row must stay in order.
)
CUSTOMERS = Table(f"{LAKE}/customers", upsert=["id"], order_by="version", delete_when="new.deleted")


@pipeline(inputs=CHANGES, output=CUSTOMERS)
def changes_to_table(changes: DataFrame) -> DataFrame:
    """The row that each change leaves behind; the offset tells which of two is newer."""
    row = F.coalesce("after", "before")
    # Debezium sends a record without a value after a deletion, for compaction.
    return changes.where("op IS NOT NULL").select(
        row["id"].alias("id"),
        row["name"].alias("name"),
        row["city"].alias("city"),
        F.timestamp_millis("ts_ms").alias("changed_at"),
        (F.col("op") == "d").alias("deleted"),
        F.col("offset").alias("version"),
    )
