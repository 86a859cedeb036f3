"""All that a broker asks about schemas, in one object: `broker/validation/port.py` says what.

Ids are looked up in the broker's own process, where they are remembered; keys and values are
decoded in processes beside it.
"""

from collections.abc import Collection, Sequence
from typing import Final

from penstock.config.broker import BrokerConfig
from penstock.records.schema_check import RecordFlaw, SchemaScope
from penstock.schemas.checking.registrations import Registrations
from penstock.schemas.checking.workers import DecodeWorkers
from penstock.schemas.dead_letters import Cause, Header
from penstock.schemas.registry_client import RegistryClient

REGISTRY_S: Final = 3.0  # A producer waits while the registry is asked.
_PIPELINE: Final = "validation"
_STAGES: Final = {True: "KEY_CONVERTER", False: "VALUE_CONVERTER"}


class SchemaValidator:
    """Open until `close`; processes start with the first batch that must be decoded."""

    def __init__(self, registrations: Registrations, workers: DecodeWorkers) -> None:
        self._registrations = registrations
        self._workers = workers
        self.good_ids = registrations.good_ids

    @classmethod
    def of(cls, config: BrokerConfig) -> "SchemaValidator":
        """As the broker's settings say."""
        urls = ",".join(config.confluent_schema_registry_url)
        basic_auth = config.confluent_basic_auth_user_info
        client = RegistryClient(urls, basic_auth=basic_auth, timeout_s=REGISTRY_S)
        settings = {"urls": urls, "basic_auth": basic_auth, "registry_s": REGISTRY_S}
        workers = DecodeWorkers(
            settings,
            count=config.penstock_validation_workers,
            limit_s=config.penstock_validation_timeout_ms / 1000,
        )
        return cls(Registrations(client), workers)

    async def refusals(self, ids: Collection[int], scope: SchemaScope) -> dict[int, str]:
        """Of these ids those that may not stand there, and why; raises SchemasAway."""
        return await self._registrations.refusals(ids, scope)

    async def undecodable(
        self, batch: memoryview, sides: Sequence[bool], skipped: Sequence[int]
    ) -> list[RecordFlaw]:
        """The records whose keys (True) or values do not decode; raises SchemasAway."""
        return await self._workers.flaws(sides, batch, skipped)

    def dead_letter_headers(
        self, flaw: RecordFlaw, *, topic: str, partition: int, timestamp_ms: int
    ) -> list[Header]:
        """What a dead letter says about itself; its offset was never given."""
        return Cause(
            topic=topic,
            partition=partition,
            timestamp_ms=timestamp_ms,
            pipeline=_PIPELINE,
            stage=_STAGES[flaw.is_key],
            error_class=flaw.error_class,
            message=flaw.reason,
        ).headers()

    def gauges(self) -> dict[str, float]:
        """What a scrape sees, by its name."""
        return {"workers": len(self._workers.pids), "worker_deaths": self._workers.deaths}

    async def close(self) -> None:
        """Stop asking, and end the processes."""
        self._registrations.close()
        await self._workers.close()
