"""ListTransactions: the transactions of one coordinator."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Request, api=ApiKey.LIST_TRANSACTIONS):
    """Filters; empty ones let all pass."""

    state_filters: list[str] = array(string, "0+")
    producer_id_filters: list[int] = array(int64, "0+")
    duration_filter: int = int64("1+", default=-1)
    transactional_id_pattern: str | None = string("2+", nullable=True, default=None)


class TransactionState(Struct):
    """A transaction and its state."""

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    transaction_state: str = string("0+")


class ListTransactionsResponse(Response, api=ApiKey.LIST_TRANSACTIONS):
    """The transactions that this broker coordinates."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    unknown_state_filters: list[str] = array(string, "0+")
    transaction_states: list[TransactionState] = array(TransactionState, "0+")
