"""The error of an expression that has no meaning: it names the place and gives ksqlDB's reason."""

from penstock.sql.language.place import Place


class SqlTypeError(ValueError):
    """The expression fits the grammar but not its types, columns or functions."""

    def __init__(self, reason: str, place: Place | None = None) -> None:
        super().__init__(f"{place}: {reason}" if place else reason)
        self.reason = reason
        self.place = place
