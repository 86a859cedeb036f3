"""Durations as milliseconds, and what windows must satisfy."""

from penstock.sql.analysis.logical import JoinSpan, WindowSpan
from penstock.sql.catalog.refusal import StatementRefused
from penstock.sql.language.queries import (
    Duration,
    Hopping,
    JoinReach,
    SessionGap,
    SqlWindow,
    Tumbling,
)
from penstock.sql.language.words import UNITS_MS

_LONGEST_MS = (1 << 62) - 1


def duration_ms(duration: Duration) -> int:
    """The milliseconds of a duration; months and years have no length of their own."""
    unit = UNITS_MS.get(duration.unit)
    if unit is None:
        raise StatementRefused(
            f"{duration} has no fixed length: use DAYS, HOURS, MINUTES, SECONDS or MILLISECONDS."
        )
    found = duration.count * unit
    if found > _LONGEST_MS:
        raise StatementRefused(f"{duration} is too long.")
    return found


def _perhaps_ms(duration: Duration | None) -> int | None:
    return None if duration is None else duration_ms(duration)


def window_span(window: SqlWindow) -> WindowSpan:
    """The windows of a WINDOW clause; StatementRefused where they cannot be."""
    match window:
        case Tumbling():
            size_ms = duration_ms(window.size)
            kind, advance_ms = "TUMBLING", size_ms
        case Hopping():
            kind, size_ms, advance_ms = (
                "HOPPING", duration_ms(window.size), duration_ms(window.advance),
            )  # fmt: skip
        case SessionGap():
            size_ms = duration_ms(window.gap)
            kind, advance_ms = "SESSION", size_ms
    grace_ms, retention_ms = _perhaps_ms(window.grace), _perhaps_ms(window.retention)
    _check(size_ms, advance_ms, grace_ms, retention_ms)
    return WindowSpan(
        kind=kind,  # type: ignore[arg-type]
        size_ms=size_ms,
        advance_ms=advance_ms,
        grace_ms=grace_ms,
        retention_ms=retention_ms,
    )


def _check(size_ms: int, advance_ms: int, grace_ms: int | None, retention_ms: int | None) -> None:
    if size_ms < 1:
        raise StatementRefused("The size of a window must be at least 1 MILLISECOND.")
    if not 0 < advance_ms <= size_ms:
        raise StatementRefused(
            f"Window advancement interval should be more than zero and less than window duration: "
            f"it is {advance_ms} ms of {size_ms} ms."
        )
    needed_ms = size_ms + (grace_ms or 0)
    if retention_ms is not None and retention_ms < needed_ms:
        raise StatementRefused(
            "The retention period of the window store must be no smaller than its window size plus "
            f"the grace period: {retention_ms} ms is less than {needed_ms} ms."
        )


def join_span(reach: JoinReach) -> JoinSpan:
    """The WITHIN clause."""
    return JoinSpan(
        before_ms=duration_ms(reach.before),
        after_ms=duration_ms(reach.after),
        grace_ms=_perhaps_ms(reach.grace),
    )
