"""What all requests to a proxy share: its settings, the brokers, the producer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.rest.brokers import Brokers
from penstock.rest.config import RestConfig
from penstock.rest.producing import SharedProducer

if TYPE_CHECKING:
    from penstock.rest.payloads.schema_finder import SchemaFinder


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One proxy at work; `stopping` is set when answers without end are to end."""

    config: RestConfig
    brokers: Brokers
    producer: SharedProducer
    schemas: "SchemaFinder | None" = None  # None: there is no registry.
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    @asynccontextmanager
    async def open(cls, config: RestConfig) -> AsyncIterator["Proxy"]:
        """With clients that connect when they are first asked."""
        async with (
            Brokers.open(config.admin) as brokers,
            SharedProducer.open(config.producer) as producer,
        ):
            schemas = _schema_finder(config)
            yield cls(config=config, brokers=brokers, producer=producer, schemas=schemas)


def _schema_finder(config: RestConfig) -> "SchemaFinder | None":
    """Loaded where there is a registry: the languages of schemas take memory and time."""
    if not config.registry_url:
        return None
    from penstock.rest.payloads.registry_access import RegistryAccess
    from penstock.rest.payloads.schema_finder import SchemaFinder

    return SchemaFinder(RegistryAccess.of(config.registry_url, config.registry))
