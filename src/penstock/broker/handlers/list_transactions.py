"""ListTransactions: the transactions that this broker coordinates, through filters."""

from collections.abc import Callable, Iterable

from penstock.broker.context import RequestContext
from penstock.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from penstock.transactions.transaction import STATES_BY_LABEL, Transaction


def handle(request: ListTransactionsRequest, context: RequestContext) -> ListTransactionsResponse:
    known = list(context.broker.transactions.coordinator.transactions())
    passes = _filter(request, known, now_ms=context.broker.now_ms())
    return ListTransactionsResponse(
        unknown_state_filters=[
            label for label in request.state_filters if label not in STATES_BY_LABEL
        ],
        transaction_states=[
            TransactionState(
                transactional_id=each.transactional_id,
                producer_id=each.producer_id,
                transaction_state=each.state.label,
            )
            for each in known
            if passes(each)
        ],
    )


def _filter(
    request: ListTransactionsRequest, all_known: Iterable[Transaction], *, now_ms: int
) -> Callable[[Transaction], bool]:
    """Empty filters let all pass; a state nobody knows lets none pass."""
    labels = frozenset(request.state_filters)
    producer_ids = frozenset(request.producer_id_filters)
    longer_than_ms = request.duration_filter
    matching = _matching(request.transactional_id_pattern, all_known)

    def passes(known: Transaction) -> bool:
        return (
            (not labels or known.state.label in labels)
            and (not producer_ids or known.producer_id in producer_ids)
            and (longer_than_ms < 0 or now_ms - known.started_ms > longer_than_ms)
            and (matching is None or known.transactional_id in matching)
        )

    return passes


def _matching(pattern: str | None, known: Iterable[Transaction]) -> frozenset[str] | None:
    """The ids that match; None: there is no pattern."""
    if not pattern:
        return None
    from penstock.groups.patterns.pattern import TopicPattern  # Few ask by pattern.

    return TopicPattern(pattern).select(each.transactional_id for each in known)
