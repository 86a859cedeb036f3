"""Functions that ask the world: the clock and chance, which come in from outside."""

import uuid
from collections.abc import Sequence
from typing import Final

from penstock.sql.functions.catalogue import Catalogue
from penstock.sql.functions.table import ScalarFunction, Surroundings

_DAY_MS: Final = 86_400_000


def functions_of(surroundings: Surroundings) -> Sequence[ScalarFunction]:
    """RANDOM and UUID over these surroundings."""
    catalogue = Catalogue("OTHER")

    @catalogue.scalar("RANDOM", "() -> DOUBLE", about="A number from 0 to 1, by chance.")
    def random() -> float:
        return surroundings.random()

    @catalogue.scalar("UUID", "() -> STRING", about="A new UUID, or that of 16 bytes.")
    def new_uuid() -> str:
        return str(uuid.UUID(bytes=surroundings.random_bytes(16), version=4))

    @catalogue.scalar("UUID", "(BYTES) -> STRING")
    def uuid_of(value: bytes) -> str | None:
        return str(uuid.UUID(bytes=value)) if len(value) == 16 else None

    return catalogue.scalars()


def now_functions(surroundings: Surroundings, catalogue: Catalogue) -> None:
    """Add the variants of UNIX_TIMESTAMP and UNIX_DATE that take nothing."""

    @catalogue.scalar("UNIX_TIMESTAMP", "() -> BIGINT")
    def unix_now() -> int:
        return surroundings.now_ms()

    @catalogue.scalar("UNIX_DATE", "() -> INTEGER")
    def unix_today() -> int:
        return surroundings.now_ms() // _DAY_MS
