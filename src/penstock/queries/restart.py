"""When to try a failed query again: at once is no use, for ever apart neither.

Pure: the session brings the time. A batch committed since the last start shows that the query
works, so the count begins anew.
"""

from dataclasses import dataclass, replace

from penstock.queries.failure import QueryFailure
from penstock.spark.start.slow_start import RETRIES_MAX

FIRST_S = 1.0
LONGEST_S = 60.0
_RESTARTS_ONCE = 3  # A run that is to end must not try for ever.


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """How often a query failed in a row, and when it may start again."""

    in_a_row: int = 0
    total: int = 0
    resume_ms: int | None = None  # None: it is not to be started again.

    def failed(self, *, now_ms: int, progressed: bool, in_a_row_max: int | None) -> "Attempts":
        """After one more failure; `progressed`: it had committed a batch since its start."""
        in_a_row = 1 if progressed else self.in_a_row + 1
        given_up = in_a_row_max is not None and in_a_row > in_a_row_max
        resume_ms = None if given_up else now_ms + int(pause_s(in_a_row) * 1000)
        return Attempts(in_a_row=in_a_row, total=self.total + 1, resume_ms=resume_ms)

    def given_up(self) -> "Attempts":
        """After a failure that a new attempt would only repeat."""
        return replace(self, total=self.total + 1, in_a_row=self.in_a_row + 1, resume_ms=None)


def pause_s(failures: int) -> float:
    """A second after the first failure, then twice as long each time, a minute at most."""
    return float(min(LONGEST_S, FIRST_S * 2.0 ** min(max(0, failures - 1), 30)))


def restarts_max(failure: QueryFailure, chosen: int | None, *, ends: bool) -> int | None:
    """How many failures in a row may be followed by a new attempt; None: any number."""
    limit = _RESTARTS_ONCE if chosen is None and ends else chosen
    if limit is not None and failure.is_slow_start:
        return max(limit, RETRIES_MAX)
    return limit
