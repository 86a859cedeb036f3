"""How many different values there were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.functions.aggregates.sketch import (
    EXACT_MAX,
    add_to_sketch,
    merge_sketches,
    sketch_size,
)


def sketch_of(values: object) -> bytes:
    sketch = b""
    for value in values:  # type: ignore[attr-defined]
        sketch = add_to_sketch(sketch, value)
    return sketch


@given(st.lists(st.one_of(st.integers(), st.text(), st.booleans()), max_size=50))
def test_few_values_are_counted_exactly(values: list[object]) -> None:
    different = {(type(value), value) for value in values}
    assert sketch_size(sketch_of(values)) == len(different)


@pytest.mark.parametrize("count", [EXACT_MAX - 1, EXACT_MAX, EXACT_MAX + 1, 3_000])
def test_many_values_are_counted_within_a_few_percent(count: int) -> None:
    found = sketch_size(sketch_of(range(count)))
    assert found == count if count <= EXACT_MAX else abs(found - count) < 0.07 * count


@pytest.mark.parametrize(("left", "right"), [(10, 10), (600, 10), (10, 600), (600, 600)])
def test_merged_sketches_are_the_sketch_of_all(left: int, right: int) -> None:
    one, two = range(left), range(5, 5 + right)
    whole = sketch_of(sorted({*one, *two}))
    assert merge_sketches(sketch_of(one), sketch_of(two)) == whole
