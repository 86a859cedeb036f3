"""What can go wrong between a topic and its table, each with a sentence that says what to do.

PenstockError
  LakeError                 anything about a lake table
    TableBusy               another writer holds the table
    IncompatibleSchema      a column changed in a way the table cannot follow
    UndecodableRecord       a record's value is not what its format says
"""

from penstock.errors import PenstockError


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
        brings = f"{where} brings {new}" if where else f"the data now brings {new}"
        reason = f" ({why})" if why else ""
        super().__init__(
            f"column {column} is {old} in the table and {brings}{reason}; nothing of this batch "
            "was written: repair the data, or choose another table, and start again"
        )

    def at(self, where: str) -> "IncompatibleSchema":
        """The same with the record that brought the new type."""
        return IncompatibleSchema(self.column, self.old, self.new, where=where, why=self.why)

    def under(self, column: str) -> "IncompatibleSchema":
        """The same one level further out: the column's name gets its parent's before it."""
        return IncompatibleSchema(f"{column}.{self.column}", self.old, self.new, why=self.why)


class UndecodableRecord(LakeError):
    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"the record at offset {offset} of {topic}-{partition} cannot be decoded: {reason}"
        )
