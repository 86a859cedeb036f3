"""Who knows about schemas: the broker itself does not, and asks through this port.

The composition root fills it in (`schemas/checking/validator.py`), so that the broker's side does
not know how schemas look, where they are kept and how anything is decoded.
"""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Protocol, TypeAlias

from penstock.config.broker import BrokerConfig
from penstock.records.schema_check import RecordFlaw, SchemaScope


class Validator(Protocol):
    """Opened with the first topic that asks for it."""

    def good_ids(self, scope: SchemaScope) -> Set[int]:
        """The schema ids that are known to be right there; it may grow. Nothing is asked."""
        ...

    async def refusals(self, ids: Collection[int], scope: SchemaScope) -> dict[int, str]:
        """Of these ids those that may not stand there, and why; raises SchemasAway."""
        ...

    async def undecodable(
        self, batch: memoryview, sides: Sequence[bool], skipped: Sequence[int]
    ) -> list[RecordFlaw]:
        """The records whose keys (True) or values (False) do not decode; raises SchemasAway.

        Those at the places `skipped` are not looked at: they are known to fail.
        """
        ...

    def dead_letter_headers(
        self, flaw: RecordFlaw, *, topic: str, partition: int, timestamp_ms: int
    ) -> Sequence[tuple[str, bytes | None]]:
        """What a dead letter says about itself, behind the headers that the record had."""
        ...

    def gauges(self) -> Mapping[str, float]:
        """What a scrape sees, by its name."""
        ...

    async def close(self) -> None: ...


OpenValidator: TypeAlias = Callable[[BrokerConfig], Validator]
