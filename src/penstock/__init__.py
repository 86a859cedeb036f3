"""Penstock: event streaming in Python that any Kafka client takes for Kafka."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.client.admin import Admin
    from penstock.client.aio import AsyncConsumer, AsyncProducer
    from penstock.client.consumer import Consumer
    from penstock.client.producer import Producer

__version__ = "0.1.0"

__all__ = ["Admin", "AsyncConsumer", "AsyncProducer", "Consumer", "Producer", "__version__"]

_HOMES = {
    "Admin": "admin",
    "AsyncConsumer": "aio",
    "AsyncProducer": "aio",
    "Consumer": "consumer",
    "Producer": "producer",
}


def __getattr__(name: str) -> object:
    # A broker starts without librdkafka; only who asks for a client pays for it.
    if name not in _HOMES:
        raise AttributeError(f"penstock has no {name}")
    from importlib import import_module

    return getattr(import_module(f"penstock.client.{_HOMES[name]}"), name)
