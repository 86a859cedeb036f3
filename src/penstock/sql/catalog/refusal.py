"""The error of a statement that is well formed and still cannot be carried out."""

from penstock.sql.language.place import Place


class StatementRefused(ValueError):
    """What is wrong, and where; `str` is the sentence with its place."""

    def __init__(self, reason: str, *, place: Place | None = None) -> None:
        super().__init__(reason if place is None else f"{place}: {reason}")
        self.reason = reason
        self.place = place
