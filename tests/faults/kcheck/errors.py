"""Errors that reached an application: none without an outage, and some not even with one.

A client retries by itself whatever passes by itself. What it cannot retry tells its application
that it did something wrong, or that another has taken its place, and here neither is ever true.
"""

from collections.abc import Iterator

from tests.faults.kcheck.findings import Evidence, Excuse, Finding
from tests.faults.kcheck.operations import Trouble

# No broker that dies and comes back makes any of these true.
NEVER = frozenset(
    {
        "CONCURRENT_TRANSACTIONS",
        "CORRUPT_MESSAGE",
        "DUPLICATE_SEQUENCE_NUMBER",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_RECORD",
        "INVALID_REQUEST",
        "INVALID_TXN_STATE",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "PRODUCER_FENCED",
        "TRANSACTIONAL_ID_NOT_FOUND",
        "TRANSACTION_COORDINATOR_FENCED",
        "UNKNOWN_PRODUCER_ID",
        "UNKNOWN_SERVER_ERROR",
        "UNSUPPORTED_VERSION",
        "_FENCED",
    }
)


# Patience that ran out: one may ask again, and without an outage it tells how busy the machine is.
WAITED = frozenset({"REQUEST_TIMED_OUT", "TimeoutError", "TimeoutException", "_TIMED_OUT"})


def undue_errors(evidence: Evidence) -> Iterator[Finding]:
    """An application was given an error that Apache Kafka would not give."""
    for trouble in evidence.history.troubles:
        yield Finding(
            check="undue-error",
            text=f"{trouble.error}: {trouble.process}, {trouble.during}: {trouble.text}",
            excuse=_excuse(trouble, has_outages=evidence.history.allowed.has_outages),
        )


def _excuse(trouble: Trouble, *, has_outages: bool) -> Excuse | None:
    if trouble.error in WAITED:
        return Excuse.WAITED
    is_due = trouble.error not in NEVER or _is_abort_of_nothing(trouble)
    return Excuse.OUTAGE if has_outages and is_due else None


def _is_abort_of_nothing(trouble: Trouble) -> bool:
    """Whether it may be an abort of what never reached a coordinator.

    librdkafka asks for it when its partitions could not be added in an outage. Kafka refuses it as
    we do (`compat/test_ends_of_transactions.py`): the transaction before it was committed.
    """
    return trouble.error == "INVALID_TXN_STATE" and trouble.during.startswith("abort of ")
