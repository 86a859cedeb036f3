"""The records of `__transaction_state`, byte for byte as Apache Kafka writes them.

`OBSERVED` are values that Apache Kafka 4.3.1 wrote for its own Java client.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.protocol.primitives import MalformedMessage
from penstock.transactions.stored import read_record, to_record, tombstone
from penstock.transactions.transaction import NO_EPOCH, Transaction, TransactionState


def packed(*parts: str) -> bytes:
    return bytes.fromhex("".join(parts).replace(" ", ""))


KEY = packed("0000", "0008", b"my-txn-1".hex())  # Type of the record, length, id.

EMPTY = packed(
    "0001",  # Version of the value.
    "00000000000003e8",  # Producer id 1000.
    "0000",  # Epoch 0.
    "0000ea60",  # Timeout 60 s.
    "00",  # Empty.
    "00",  # No partitions: null.
    "0000018bcfe56800",  # Updated.
    "ffffffffffffffff",  # Never started.
    "00",  # No tagged fields.
)
OFFSETS = "13" + b"__consumer_offsets".hex() + "02 00000007" + "00"  # Eighteen letters, then 7.
RECORDS = "02" + b"a".hex() + "03 00000000 00000002" + "00"  # One letter, then 0 and 2.
ONGOING = packed(
    "0001",
    "00000000000003e8",
    "0003",
    "0000ea60",
    "01",  # Ongoing.
    "03",  # Two topics, in the order of their names:
    *(OFFSETS, RECORDS),
    "0000018bcfe56be8",
    "0000018bcfe56800",
    "01 02 02 0002",  # One tagged field: number 2, two bytes, transaction version 2.
)
COMPLETE = packed(
    "0001",
    "00000000000003e8",
    "0003",
    "0000ea60",
    "04",  # CompleteCommit.
    "01",  # No topics, and not null.
    "0000018bcfe56be8",
    "0000018bcfe56800",
    "00",
)
RENEWED = packed(
    "0001",
    "00000000000003e8",
    "7fff",
    "0000ea60",
    "02",  # PrepareCommit.
    "01",
    "0000018bcfe56be8",
    "0000018bcfe56800",
    "02",  # Two tagged fields:
    "01 08 00000000000007d0",  # the next producer id, 2000,
    "02 02 0002",  # and transaction version 2.
)
OLDEST = packed(
    "0000",  # Version 0, which brokers before 3.8 wrote.
    "00000000000003e8",
    "0001",
    "0000ea60",
    "01",
    "00000001",
    "0001 61",
    "00000001 00000004",
    "0000018bcfe56be8",
    "0000018bcfe56800",
)
# What became of one transactional id, up to the abort of its second transaction.
OBSERVED = [
    (
        "Empty",
        "0001 0000000000000000 0000 0000ea60 00 00 000001a1e1498abf ffffffffffffffff"
        "01 00 08 0000000000000000",
    ),
    (
        "Ongoing",
        "0001 0000000000000000 0000 0000ea60 01 02 135f5f636f6e73756d65725f6f666673657473"
        "02 0000001c 00 000001a1e1498e7e 000001a1e1498e7e"
        "02 00 08 0000000000000000 02 02 0002",
    ),
    (
        "CompleteCommit",
        "0001 0000000000000000 0001 0000ea60 04 01 000001a1e149915d 000001a1e1498e7e"
        "02 00 08 0000000000000000 02 02 0002",
    ),
    (
        "PrepareAbort",
        "0001 0000000000000000 0002 0000ea60 03 02 135f5f636f6e73756d65725f6f666673657473"
        "02 0000001c 00 000001a1e14991f7 000001a1e14991e1"
        "02 00 08 0000000000000000 02 02 0002",
    ),
]


@pytest.mark.parametrize(("state", "observed"), OBSERVED)
def test_what_kafka_wrote_is_read_and_written_again(state: str, observed: str) -> None:
    found = read_record(KEY, packed(observed))
    assert found is not None
    known = found[1]
    assert known is not None
    assert (known.state.label, known.previous_producer_id) == (state, 0)
    assert to_record(known) == (KEY, packed(observed))


NOW_MS = 1_700_000_000_000


def transaction(**changes: object) -> Transaction:
    plain: dict[str, object] = {
        "transactional_id": "my-txn-1",
        "state": TransactionState.EMPTY,
        "producer_id": 1_000,
        "producer_epoch": 0,
        "timeout_ms": 60_000,
        "updated_ms": NOW_MS,
    }
    return Transaction(**{**plain, **changes})  # type: ignore[arg-type]


BUSY = {"started_ms": NOW_MS, "updated_ms": NOW_MS + 1_000, "producer_epoch": 3}

GOLDEN = [
    (transaction(), EMPTY),
    (
        transaction(
            **BUSY,
            state=TransactionState.ONGOING,
            partitions=frozenset({("a", 2), ("__consumer_offsets", 7), ("a", 0)}),
            client_version=2,
        ),
        ONGOING,
    ),
    (transaction(**BUSY, state=TransactionState.COMPLETE_COMMIT), COMPLETE),
    (
        transaction(
            **{**BUSY, "producer_epoch": 32_767},
            state=TransactionState.PREPARE_COMMIT,
            next_producer_id=2_000,
            client_version=2,
        ),
        RENEWED,
    ),
]


@pytest.mark.parametrize(("known", "value"), GOLDEN)
def test_a_transaction_is_stored_in_kafkas_bytes(known: Transaction, value: bytes) -> None:
    assert to_record(known) == (KEY, value)
    assert read_record(KEY, value) == ("my-txn-1", known)


def test_partitions_are_read_in_any_order() -> None:
    shuffled = ONGOING.replace(packed(OFFSETS, RECORDS), packed(RECORDS, OFFSETS))
    assert shuffled != ONGOING
    found = read_record(KEY, shuffled)
    assert found is not None
    assert found[1] is not None
    assert found[1].partitions == {("a", 0), ("a", 2), ("__consumer_offsets", 7)}


def test_the_oldest_version_is_read() -> None:
    wanted = transaction(
        state=TransactionState.ONGOING,
        producer_epoch=1,
        partitions=frozenset({("a", 4)}),
        started_ms=NOW_MS,
        updated_ms=NOW_MS + 1_000,
    )
    assert read_record(KEY, OLDEST) == ("my-txn-1", wanted)


def test_a_forgotten_id_is_a_key_without_a_value() -> None:
    assert tombstone("my-txn-1") == (KEY, None)
    assert read_record(KEY, None) == ("my-txn-1", None)


def test_a_key_of_another_kind_is_no_transaction() -> None:
    assert read_record(packed("0001") + KEY[2:], EMPTY) is None


def test_an_unfinished_fencing_is_an_abort_and_a_dead_id_is_gone() -> None:
    fence = COMPLETE[:16] + b"\x07" + COMPLETE[17:]
    found = read_record(KEY, fence)
    assert found is not None
    assert found[1] is not None
    assert found[1].state is TransactionState.PREPARE_ABORT
    assert read_record(KEY, COMPLETE[:16] + b"\x06" + COMPLETE[17:]) == ("my-txn-1", None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, EMPTY),
        (b"", EMPTY),
        (KEY[:-1], EMPTY),
        (KEY, b""),
        (KEY, b"\x00\x02" + EMPTY[2:]),
        (KEY, EMPTY[:-3]),
        (KEY, COMPLETE[:16] + b"\x09" + COMPLETE[17:]),
    ],
)
def test_what_cannot_be_read_says_so(key: bytes | None, value: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_record(key, value)


numbers = st.integers(-1, 1 << 62)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
transactions = st.builds(
    Transaction,
    transactional_id=names,
    state=st.sampled_from(
        [
            s
            for s in TransactionState
            if s not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
        ]
    ),
    producer_id=st.integers(0, 1 << 40),
    producer_epoch=st.integers(0, 32_767),
    timeout_ms=st.integers(1, 900_000),
    updated_ms=numbers,
    started_ms=numbers,
    partitions=st.frozensets(st.tuples(names, st.integers(0, 1 << 30)), max_size=5),
    client_version=st.sampled_from([0, 2]),
    previous_producer_id=st.integers(-1, 1 << 40),
    next_producer_id=st.integers(-1, 1 << 40),
    last_epoch=st.just(NO_EPOCH),
)


@given(transactions)
def test_what_is_stored_is_read_back(known: Transaction) -> None:
    if known.state is TransactionState.EMPTY:
        known = transaction(transactional_id=known.transactional_id)
    key, value = to_record(known)
    assert read_record(key, value) == (known.transactional_id, known)
