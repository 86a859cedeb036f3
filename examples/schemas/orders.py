"""Orders in Avro: the producer registers their schema, the consumer reads by it.

    penstock server config/server.properties
    penstock registry schema-registry.properties
    python examples/schemas/orders.py

The registry keeps what a topic's values look like, so a later version of this program that adds a
field with a default can be read by this one, and one that takes a field away without asking is
refused before it has written anything.
"""

import argparse
from dataclasses import asdict, dataclass
from typing import Any

from penstock import Admin, AvroDeserializer, AvroSerializer, Consumer, NewTopic, Producer

TOPIC = "orders.avro"
SCHEMA = """
{
  "type": "record",
  "name": "Order",
  "namespace": "shop",
  "fields": [
    {"name": "order_id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "cents", "type": "long"},
    {"name": "note", "type": ["null", "string"], "default": null}
  ]
}
"""


@dataclass(frozen=True)
class Order:
    """What the program works with."""

    order_id: int
    customer: str
    cents: int
    note: str | None = None


ORDERS = [Order(1, "ada", 1250), Order(2, "ben", 300, "as a present"), Order(3, "ada", 99)]


def produce(servers: str, registry: str) -> None:
    """Send the orders; the first one registers the schema under `orders.avro-value`."""
    config: dict[str, Any] = {"bootstrap.servers": servers, "schema.registry.url": registry}
    serializer = AvroSerializer(SCHEMA, to_dict=asdict)
    with Producer[str, Order](config, key="string", value=serializer) as producer:
        for order in ORDERS:
            producer.send(TOPIC, order, key=order.customer)


def consume(servers: str, registry: str, count: int) -> list[Order]:
    """Read so many orders back, by the schema that each one names."""
    config: dict[str, Any] = {
        "bootstrap.servers": servers,
        "schema.registry.url": registry,
        "group.id": "orders-example",
        "auto.offset.reset": "earliest",
    }
    found: list[Order] = []
    deserializer = AvroDeserializer(from_dict=lambda fields: Order(**fields))
    with Consumer[str, Order](config, key="string", value=deserializer) as consumer:
        consumer.subscribe([TOPIC])
        while len(found) < count:
            found += [record.value for record in consumer.poll(1.0) if record.value is not None]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap-server", default="localhost:9092")
    parser.add_argument("--schema-registry", default="http://localhost:8081")
    options = parser.parse_args()
    with Admin({"bootstrap.servers": options.bootstrap_server}) as admin:
        if TOPIC not in {one.name for one in admin.list_topics()}:
            admin.create_topics([NewTopic(name=TOPIC)])
    produce(options.bootstrap_server, options.schema_registry)
    for order in consume(options.bootstrap_server, options.schema_registry, len(ORDERS)):
        print(order)


if __name__ == "__main__":
    main()
