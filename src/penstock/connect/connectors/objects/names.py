"""Names of objects: made of topic, partition and first offset, and read back.

A name says which records are in the object, so what is written twice is there once. The topic in
the name is the one the records were read from; a transform can change the folder alone.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRules:
    """How names are put together."""

    topics_dir: str = "topics"
    directory_delimiter: str = "/"
    file_delimiter: str = "+"
    width: int = 10  # Digits of an offset, so that names sort by it.

    def folder(self, topic: str, encoded: str) -> str:
        """Where objects of a topic lie, below the store's root."""
        parts = [part for part in (self.topics_dir, topic, encoded) if part]
        return self.directory_delimiter.join(parts)

    def name(self, topic: str, partition: int, first_offset: int, extension: str) -> str:
        """The last part of a name."""
        number = str(first_offset).zfill(self.width)
        return self.file_delimiter.join([topic, str(partition), number]) + extension

    def parse(self, name: str) -> "NamedObject | None":
        """What a name says; None: it is none of these. Others write the last offset too."""
        delimiter = re.escape(self.file_delimiter)
        last = name.rpartition("/")[2]
        pattern = rf"(.+?){delimiter}(\d+){delimiter}(\d+)(?:{delimiter}(\d+))?(\.[^/]*)?"
        found = re.fullmatch(pattern, last)
        if found is None:
            return None
        return NamedObject(topic=found[1], partition=int(found[2]), first_offset=int(found[3]))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedObject:
    """What the name of an object says of the records in it."""

    topic: str
    partition: int
    first_offset: int
