"""Enrichment: each order gets the name and the city of its customer.

Customers are a compacted topic, read as a table: the newest record of each key, looked up anew for
each batch of orders, so a customer who moves is found in the new city from then on.

    penstock pipeline run examples/enrich_orders.py
    penstock console-producer --bootstrap-server localhost:9092 --topic customers \\
        --reader-property parse.key=true < examples/samples/customers.txt
    penstock console-producer --bootstrap-server localhost:9092 --topic orders \\
        --reader-property parse.key=true < examples/samples/orders.txt
    penstock console-consumer --bootstrap-server localhost:9092 --topic orders.enriched \\
        --from-beginning
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.pipelines import Topic, pipeline

ORDERS = Topic("orders", value="id LONG, customer STRING, cents LONG", partitions=2)
CUSTOMERS = Topic(
    "customers",
    value="customer STRING, name STRING, city STRING",
    as_table=True,
    partitions=2,
    configs={"cleanup.policy": "compact"},
)


@pipeline(
    inputs={"orders": ORDERS, "customers": CUSTOMERS},
    output=Topic("orders.enriched", key="id", partitions=2),
)
def enrich_orders(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """All orders; one of an unknown customer has neither name nor city."""
    known = customers.select("customer", "name", "city")
    return orders.join(F.broadcast(known), "customer", "left").select(
        "id", "customer", "name", "city", (F.col("cents") / 100).alias("dollars")
    )
