"""The seven levels: which direction is asked, and how far back in the history.

One function answers for all languages, because a language only knows how to compare two schemas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from penstock.schemas.compatibility.difference import Difference
from penstock.schemas.definitions.definition import SchemaDefinition


class CompatibilityLevel(StrEnum):
    """What a new version of a subject must be able to do."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all earlier versions count, and not the last alone."""
        return self.name.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """Whether the new schema must read what earlier ones wrote."""
        return self.name.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        """Whether the earlier schemas must read what the new one writes."""
        return self.name.startswith(("FORWARD", "FULL"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A version the new schema is held against."""

    version: int
    definition: SchemaDefinition


def reasons(
    level: CompatibilityLevel, new: SchemaDefinition, history: Sequence[Earlier]
) -> list[str]:
    """Why the new schema may not follow the history (oldest first); empty where it may.

    The newest version is looked at first, and the first version that does not fit ends the search,
    as people who read such answers expect.
    """
    if level is CompatibilityLevel.NONE:
        return []
    for earlier in reversed(history if level.is_transitive else history[-1:]):
        texts = pair_reasons(level, new, earlier.definition)
        if texts:
            old = earlier.definition.canonical()
            return [*texts, f"{{oldSchemaVersion: {earlier.version}}}", f"{{oldSchema: '{old}'}}"]
    return []


def pair_reasons(
    level: CompatibilityLevel, new: SchemaDefinition, old: SchemaDefinition
) -> list[str]:
    """Why two schemas do not go together at this level."""
    if new.kind is not old.kind:
        return ["Incompatible because of different schema type"]
    texts: list[str] = []
    if level.reads_old:
        texts += _texts(new.differences(old), "new", "old")
    if level.is_read_by_old:
        texts += _texts(old.differences(new), "old", "new")
    return texts


def _texts(differences: Sequence[Difference], reader: str, writer: str) -> list[str]:
    return [difference.text(reader, writer) for difference in differences]
