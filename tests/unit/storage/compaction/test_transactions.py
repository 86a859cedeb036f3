"""Transactions as compaction meets them, batch by batch."""

from tests.unit.storage.compacted import keyed
from tests.unit.storage.made import Batch, marker

from penstock.records.batch import emptied_batch, read_header
from penstock.storage.compaction.transactions import CleanedTransactions
from penstock.storage.segments.transaction_index import AbortedTransaction


def at(offset: int, batch: Batch) -> Batch:
    return batch[0]._replace(base_offset=offset), batch[1]


def data(offset: int, producer_id: int) -> Batch:
    return at(offset, keyed([(b"a", b"1")], producer=(producer_id, 0, 0), is_transactional=True))


def end(offset: int, producer_id: int, *, is_commit: bool) -> Batch:
    return at(offset, marker(producer_id, 0, is_commit=is_commit))


def test_data_is_of_the_aborted_transaction_between_its_first_offset_and_its_marker() -> None:
    found = CleanedTransactions()
    found.expect([AbortedTransaction(7, 10, 20, 21)])
    assert not found.is_aborted(data(9, 7)[0])
    assert not found.is_aborted(data(11, 8)[0])
    assert found.is_aborted(data(12, 7)[0])
    assert not found.is_spent(*end(20, 7, is_commit=False))
    assert not found.is_aborted(data(21, 7)[0])
    assert found.aborted == [AbortedTransaction(7, 10, 20, 21)]


def test_a_marker_without_data_in_front_is_spent() -> None:
    found = CleanedTransactions()
    found.expect([AbortedTransaction(7, 10, 20, 21)])
    assert found.is_spent(*end(20, 7, is_commit=False))
    assert found.is_spent(*end(21, 8, is_commit=True))
    assert found.aborted == []


def test_a_commit_is_spent_only_once_its_data_is_gone() -> None:
    found = CleanedTransactions()
    found.is_aborted(data(1, 8)[0])
    assert not found.is_spent(*end(2, 8, is_commit=True))
    assert found.is_spent(*end(3, 8, is_commit=True))


def test_an_entry_whose_marker_is_gone_does_not_reach_beyond_it() -> None:
    """Were it so, records of a later transaction of the producer would be lost."""
    found = CleanedTransactions()
    found.expect([AbortedTransaction(7, 10, 20, 21)])
    assert found.is_aborted(data(15, 7)[0])
    assert not found.is_aborted(data(30, 7)[0])


def test_an_abort_without_an_entry_keeps_the_data_and_its_marker() -> None:
    found = CleanedTransactions()
    assert not found.is_aborted(data(1, 7)[0])
    assert not found.is_spent(*end(2, 7, is_commit=False))


def test_an_emptied_marker_is_spent() -> None:
    found = CleanedTransactions()
    header, _ = end(5, 7, is_commit=True)
    empty = memoryview(emptied_batch(header))
    assert found.is_spent(read_header(empty), empty)


def test_transactions_of_one_producer_follow_each_other() -> None:
    found = CleanedTransactions()
    first, second = AbortedTransaction(7, 10, 12, 13), AbortedTransaction(7, 14, 16, 17)
    found.expect([second, first])
    for offset, entry in ((10, first), (14, second)):
        assert found.is_aborted(data(offset, 7)[0])
        assert not found.is_spent(*end(entry.last_offset, 7, is_commit=False))
    assert found.aborted == [first, second]
