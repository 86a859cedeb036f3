"""What goes wrong with one row: the caller logs it and takes NULL, and the query goes on."""


class RowFailure(Exception):
    """A value that cannot be computed from this row: an entry of the processing log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
