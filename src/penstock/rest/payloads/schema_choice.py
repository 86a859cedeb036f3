"""Which schema a request means: by id, by subject and version, by its text, or the latest there is.

Pure: what is asked of a registry follows from the choice, and `schema_finder` asks.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.schemas.errors import SchemaError
from penstock.schemas.lookup import SchemaKind
from penstock.schemas.subject_names import SubjectNameStrategy, topic_name

if TYPE_CHECKING:
    from penstock.schemas.registry_client import ReferencedVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChoice:
    """The schema for one side of a topic; of id, version and text at most one is given."""

    topic: str
    is_key: bool
    kind: SchemaKind | None = None  # What a text is written in; else the schema must be of it.
    schema_id: int | None = None
    version: int | None = None
    text: str | None = None
    references: tuple["ReferencedVersion", ...] = ()  # Of the text.
    subject: str | None = None  # None: as the strategy says.
    strategy: SubjectNameStrategy = topic_name

    def __post_init__(self) -> None:
        given = [one for one in (self.schema_id, self.version, self.text) if one is not None]
        if len(given) > 1:
            raise SchemaError("Give only one of schema id, schema version and schema.")
        if self.text is not None and self.kind is None:
            raise SchemaError("A schema that is given as text needs its type.")

    @property
    def is_latest(self) -> bool:
        """Whether only the subject is named, so that the answer may change."""
        return self.schema_id is None and self.version is None and self.text is None

    def subject_of(self, record: str | None) -> str:
        """The subject, for a schema whose outermost type has this name."""
        if self.subject is not None:
            return self.subject
        return self.strategy(self.topic, self.is_key, record)
