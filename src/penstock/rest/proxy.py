"""What all requests to a proxy share: its settings, the brokers, the producer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from penstock.rest.brokers import Brokers
from penstock.rest.config import RestConfig
from penstock.rest.producing import SharedProducer


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """One proxy at work; `stopping` is set when answers without end are to end."""

    config: RestConfig
    brokers: Brokers
    producer: SharedProducer
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    @asynccontextmanager
    async def open(cls, config: RestConfig) -> AsyncIterator["Proxy"]:
        """With clients that connect when they are first asked."""
        async with (
            Brokers.open(config.admin) as brokers,
            SharedProducer.open(config.producer) as producer,
        ):
            yield cls(config=config, brokers=brokers, producer=producer)
