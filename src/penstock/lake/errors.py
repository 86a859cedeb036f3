"""What can go wrong between a topic and its table, each with a sentence that says what to do.

PenstockError
  LakeError                 anything about a lake table
    TableBusy               another writer holds the table
    IncompatibleSchema      a column changed in a way the table cannot follow
    UnfitName               a field's name cannot be a column's
    UndecodableRecord       a record's value is not what its format says
"""

from typing import TypeAlias

from penstock.errors import PenstockError

_WHAT_TO_DO = (
    "nothing of this batch was written: repair the data, choose another table, or let on_error "
    "(--on-error) or dead_letter_topic (--dead-letter-topic) set such records aside, and start "
    "again"
)


class LakeError(PenstockError):
    """Something about a lake table that the user can act on."""


class TableBusy(LakeError):
    def __init__(self, directory: str) -> None:
        super().__init__(
            f"the table {directory} has a writer already; stop that one, "
            "or give each writer a table of its own"
        )


class IncompatibleSchema(LakeError):
    """Nothing of the batch was written, and its offsets were not committed: no row is lost."""

    def __init__(self, column: str, old: str, new: str, *, where: str = "", why: str = "") -> None:
        self.column = column
        self.old = old
        self.new = new
        self.why = why
        self.reason = self._told("the record")
        super().__init__(f"{self._told(where or 'the data now')}; {_WHAT_TO_DO}")

    def _told(self, who: str) -> str:
        told = f"column {self.column} is {self.old} in the table and {who} brings {self.new}"
        return f"{told} ({self.why})" if self.why else told

    def at(self, where: str) -> "IncompatibleSchema":
        """The same with the record that brought the new type."""
        return IncompatibleSchema(self.column, self.old, self.new, where=where, why=self.why)

    def under(self, column: str) -> "IncompatibleSchema":
        """The same one level further out: the column's name gets its parent's before it."""
        return IncompatibleSchema(f"{column}.{self.column}", self.old, self.new, why=self.why)


class UnfitName(LakeError):
    """A field whose name the table cannot have, or has for another field already."""

    def __init__(self, name: str, why: str, *, where: str = "") -> None:
        self.name = name
        self.why = why
        self.reason = f"the field {name or '(empty)'} cannot be a column: {why}"
        brought = f" of {where}" if where else ""
        told = f"the field {name or '(empty)'}{brought} cannot be a column: {why}"
        super().__init__(f"{told}; {_WHAT_TO_DO}")

    def at(self, where: str) -> "UnfitName":
        """The same with the record that brought the name."""
        return UnfitName(self.name, self.why, where=where)


Misfit: TypeAlias = IncompatibleSchema | UnfitName


class UndecodableRecord(LakeError):
    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"the record at offset {offset} of {topic}-{partition} cannot be decoded: {reason}"
        )
