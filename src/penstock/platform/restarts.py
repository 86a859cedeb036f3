"""When to start again what died: soon after the first time, ever later while it keeps dying.

Pure: who watches brings the time. A run that was long enough shows that it can work, so the count
begins anew.
"""

from dataclasses import dataclass

FIRST_S = 0.5
LONGEST_S = 30.0
STEADY_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """How often something died: in a row, and ever."""

    in_a_row: int = 0
    total: int = 0

    def after_end(self, *, lived_s: float) -> "Restarts":
        """After one more end of something that had run for a while."""
        in_a_row = 1 if lived_s >= STEADY_S else self.in_a_row + 1
        return Restarts(in_a_row=in_a_row, total=self.total + 1)

    @property
    def pause_s(self) -> float:
        """How long to wait before the next start."""
        doubled = FIRST_S * 2.0 ** min(max(0, self.in_a_row - 1), 30)
        return float(min(LONGEST_S, doubled))


def is_refusal(code: int, *, has_been_ready: bool) -> bool:
    """Whether an end is an answer: a first start that ends with a code has said what is wrong.

    Another start would only repeat it. What a signal ended, or what has worked before, may well
    work the next time.
    """
    return code > 0 and not has_been_ready
