"""Which answers are worth a second try, as `retry.on.status.codes` lists them: `429,500-`."""

from dataclasses import dataclass

_LOW, _HIGH = 100, 599


@dataclass(frozen=True, slots=True)
class StatusRanges:
    """Ranges of status codes, ends included."""

    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> "StatusRanges":
        """`404`, `500-`, `500-503`, `-99`, with commas between; ValueError for anything else."""
        words = [word.strip() for word in text.split(",") if word.strip()]
        return cls(tuple(_range(word) for word in words))

    def __contains__(self, status: int) -> bool:
        return any(low <= status <= high for low, high in self.ranges)


def _range(word: str) -> tuple[int, int]:
    first, dash, last = word.partition("-")
    low = int(first) if first else _LOW
    high = (int(last) if last else _HIGH) if dash else low
    if not (_LOW <= low <= high <= _HIGH) or word == "-":
        raise ValueError(f"{word} is no status code or range of them")
    return low, high


def wrong_ranges(text: str | None) -> str | None:
    """What is wrong with such a list; None: nothing."""
    try:
        StatusRanges.parse(text or "")
    except ValueError as error:
        return str(error)
    return None
