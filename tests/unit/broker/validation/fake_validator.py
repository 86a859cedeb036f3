"""A validator that knows what a test tells it."""

from collections.abc import Collection, Sequence

from penstock.config.broker import BrokerConfig
from penstock.records.batch import read_records
from penstock.records.schema_check import RecordFlaw, SchemasAway, SchemaScope
from penstock.records.schema_ids import NULL


class FakeValidator:
    """Ids of `registered` are good once asked about; values that hold `bad` do not decode."""

    def __init__(self, *registered: int) -> None:
        self.registered = set(registered)
        self.is_away = False
        self.asked: list[tuple[frozenset[int], SchemaScope]] = []
        self.decoded = 0
        self.is_closed = False
        self._good: dict[SchemaScope, set[int]] = {}

    def open(self, config: BrokerConfig) -> "FakeValidator":
        return self

    def good_ids(self, scope: SchemaScope) -> set[int]:
        return self._good.setdefault(scope, {NULL})

    async def refusals(self, ids: Collection[int], scope: SchemaScope) -> dict[int, str]:
        self.asked.append((frozenset(ids), scope))
        if self.is_away:
            raise SchemasAway("nobody answers")
        self.good_ids(scope).update(self.registered & set(ids))
        return {one: f"id {one} is unknown" for one in ids if one not in self.registered}

    async def undecodable(
        self, batch: memoryview, sides: Sequence[bool], skipped: Sequence[int]
    ) -> list[RecordFlaw]:
        self.decoded += 1
        if self.is_away:
            raise SchemasAway("nobody answers")
        return [
            RecordFlaw(index, False, "it does not decode", "DecodeError")
            for index, record in enumerate(read_records(batch))
            if b"bad" in (record.value or b"") and index not in skipped
        ]

    def dead_letter_headers(
        self, flaw: RecordFlaw, *, topic: str, partition: int, timestamp_ms: int
    ) -> list[tuple[str, bytes | None]]:
        return [("why", f"{topic}-{partition}: {flaw.reason}".encode())]

    def gauges(self) -> dict[str, float]:
        return {"workers": 1}

    async def close(self) -> None:
        self.is_closed = True
