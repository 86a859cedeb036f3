"""Changes of topics: each partition to create or delete takes a token of the client's.

Clients of versions that know THROTTLING_QUOTA_EXCEEDED are refused while they are in debt, and
ask again later. Older ones would not understand: their change is made, and they are muted after.
"""

from penstock.broker.context import RequestContext
from penstock.broker.quotas.clients import MutationMeter
from penstock.errors import ThrottlingQuotaExceeded


class MutationPermits:
    """What one request may still change."""

    __slots__ = ("_context", "_is_strict", "_meter", "_now_ms")

    def __init__(
        self, meter: MutationMeter | None, context: RequestContext, *, is_strict: bool
    ) -> None:
        self._meter = meter
        self._context = context
        self._is_strict = is_strict
        self._now_ms = context.broker.quotas.now_ms()

    def take(self, partitions: int) -> None:
        """Ask for so many partitions; raises ThrottlingQuotaExceeded where the client knows it."""
        if self._meter is None:
            return
        pause_ms = self._meter.charge(max(partitions, 0), self._now_ms, is_strict=self._is_strict)
        self._context.throttle_ms = max(self._context.throttle_ms, pause_ms)
        if pause_ms and self._is_strict:
            raise ThrottlingQuotaExceeded("The controller mutation quota has been exceeded.")


def permits(context: RequestContext, *, strict_from: int | None) -> MutationPermits:
    """For a request whose API has the error from this version on; None: it has none."""
    quotas = context.broker.quotas
    meter = None
    if quotas.is_active:
        meter = quotas.of(context.session.principal, context.client_id).mutation
    is_strict = strict_from is not None and context.version >= strict_from
    return MutationPermits(meter, context, is_strict=is_strict)
