"""How fast dead letters go back."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.tools.dlq.pace import RECORDS_PER_TRANSACTION, batches, pause_s

RATES = st.none() | st.floats(0.01, 10_000)


@given(st.lists(st.integers(), max_size=2_000), RATES)
def test_every_record_is_in_one_batch_in_order(records: list[int], rate: float | None) -> None:
    found = list(batches(records, rate))
    assert [one for batch in found for one in batch] == records
    assert all(0 < len(batch) <= RECORDS_PER_TRANSACTION for batch in found)
    assert rate is None or all(len(batch) <= max(1, rate) for batch in found)


@given(st.integers(0, 10_000), st.floats(0.01, 10_000), st.floats(0, 1e6))
def test_after_the_pause_there_were_not_too_many_a_second(
    sent: int, rate: float, elapsed_s: float
) -> None:
    pause = pause_s(sent, rate, elapsed_s)
    assert pause >= 0
    assert sent <= rate * (elapsed_s + pause) + 1e-6 * (1 + sent)
