"""One request: what it used is charged when it is answered, and the client is muted after.

The answer goes out at once and tells how long the client should be silent. Whether it obeys or
not, its connection is not read for that time (KIP-219), so that the others have the broker for
themselves.
"""

import time
from collections.abc import Coroutine, Generator
from typing import Any, Final

from penstock.broker.between_brokers import SENT_BY_BROKERS, follower_of
from penstock.broker.context import RequestContext
from penstock.broker.quotas.clients import Allowances, ClientQuotas
from penstock.net.connection import IncomingConnection
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.fetch import FetchRequest

_UNPAID_S_MAX: Final = 1.0  # More was used while nobody counted, before there was a quota.


def bill_for(
    api_key: ApiKey,
    request: Any,
    context: RequestContext,
    connection: IncomingConnection,
    request_bytes: int,
) -> "Bill | None":
    """The bill of a request; None: it costs nothing. To be asked only while quotas are active."""
    if _is_of_brokers(api_key, request, context):
        return None
    quotas = context.broker.quotas
    allowances = quotas.of(context.session.principal, context.client_id)
    return Bill(allowances, quotas, api_key, context, connection, request_bytes)


def _is_of_brokers(api_key: ApiKey, request: Any, context: RequestContext) -> bool:
    """What brokers ask of each other is not held up by quotas meant for clients."""
    is_sent = SENT_BY_BROKERS.get(api_key)
    if is_sent is None or not is_sent(request, context.version):
        return False
    return api_key is not ApiKey.FETCH or is_from_follower(request, context)


def is_from_follower(request: FetchRequest, context: RequestContext) -> bool:
    """Whether a fetch is another broker's that copies a partition; others may only say so."""
    replica_id, broker = follower_of(request), context.broker
    return replica_id in broker.image.brokers and replica_id != broker.broker_id


class Bill:
    """What one request costs its client."""

    __slots__ = (
        "_allowances",
        "_api_key",
        "_connection",
        "_context",
        "_quotas",
        "_request_bytes",
        "_work_s",
    )

    def __init__(
        self,
        allowances: Allowances,
        quotas: ClientQuotas,
        api_key: ApiKey,
        context: RequestContext,
        connection: IncomingConnection,
        request_bytes: int,
    ) -> None:
        self._allowances = allowances
        self._quotas = quotas
        self._api_key = api_key
        self._context = context
        self._connection = connection
        self._request_bytes = request_bytes
        self._work_s = 0.0

    def timed(self, work: Coroutine[Any, Any, Any]) -> "_Timed":
        """Awaits `work` and counts the time of its steps, not that of its waiting."""
        return _Timed(work, self)

    def note_step(self, seconds: float) -> None:
        self._work_s += seconds

    def note_time(self, seconds: float) -> None:
        """The time from the arrival of the request to the return of its handler.

        What receiving and sending took since the connection's last request is counted with it.
        """
        self._work_s += seconds
        connection = self._connection
        if connection.is_metered:
            transfer_s = max(connection.busy_s, 0.0)
            self._work_s += min(transfer_s, _UNPAID_S_MAX)
            # The turn that is under way will be added as a whole, and this is a part of it.
            connection.busy_s -= transfer_s + seconds

    def settle(self, response: Any) -> None:
        """Charge the client; if it has used too much, tell it so and mute its connection."""
        now_ms = self._quotas.now_ms()
        pause_ms = self._context.throttle_ms  # What the handler has charged for itself.
        if self._api_key is ApiKey.PRODUCE and self._allowances.produce is not None:
            pause_ms = max(pause_ms, self._allowances.produce.charge(self._request_bytes, now_ms))
        if self._allowances.request is not None and response is not None:
            self._connection.is_metered = True
            percent = self._work_s * 100
            pause_ms = max(pause_ms, self._allowances.request.charge(percent, now_ms))
        if not pause_ms:
            return
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = pause_ms
        self._connection.mute_for(pause_ms / 1000)


class _Timed:
    """An awaitable that passes everything through and looks at the clock around each step."""

    __slots__ = ("_bill", "_work")

    def __init__(self, work: Coroutine[Any, Any, Any], bill: Bill) -> None:
        self._work = work
        self._bill = bill

    def __await__(self) -> Generator[Any, Any, Any]:
        step, given = self._work.send, None
        while True:
            started_s = time.perf_counter()
            try:
                waited_for = step(given)
            except StopIteration as done:
                return done.value
            finally:
                self._bill.note_step(time.perf_counter() - started_s)
            try:
                step, given = self._work.send, (yield waited_for)
            except BaseException as error:  # noqa: BLE001 - a cancellation is the work's to see
                step, given = self._work.throw, error
