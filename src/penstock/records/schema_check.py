"""What a topic asks of the schemas of its records, and what was found wrong with one of them.

The broker decides what becomes of such records; what schemas are, and who knows them, is the
business of whoever checks (`schemas/checking`). Both sides speak in these values.
"""

from typing import NamedTuple

from penstock.errors import PenstockError


class SchemasAway(PenstockError):
    """Nobody could say whether the records are right: the records are not to blame."""


class SchemaScope(NamedTuple):
    """The keys or the values of one topic, and which subject their schemas belong to."""

    topic: str
    is_key: bool
    strategy: str  # The name of a subject name strategy, as the topic's setting has it.

    @property
    def side(self) -> str:
        return "key" if self.is_key else "value"


class RecordFlaw(NamedTuple):
    """What is wrong with one record of a batch."""

    batch_index: int  # Its place in the batch.
    is_key: bool
    reason: str
    error_class: str
