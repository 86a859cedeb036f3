"""When a checkpoint is another query's."""

import pytest

from penstock.spark.source.checkpoint_owner import is_other, read_by

A, B = {"subscribe": "a"}, {"subscribe": "b"}


@pytest.mark.parametrize(
    ("before", "now", "other"),
    [
        ([A], [A], False),
        ([A], [B], True),
        ([A, B], [B], False),
        ([{"Subscribe": "a, b"}], [B], False),
        ([{"assign": '{"a": [0]}'}], [A], False),
        ([{"assign": '{"a": [0]}'}], [B], True),
        ([{"subscribePattern": "a.*"}], [{"subscribe": "abc"}], False),
        ([{"subscribePattern": "a.*"}], [B], True),
        ([B], [{"subscribePattern": "a.*"}], True),
        ([{"subscribePattern": "a.*"}], [{"subscribePattern": "b.*"}], False),
        ([{"subscribePattern": r"\p{Alpha}"}], [B], False),
    ],
)
def test_a_query_is_another_one_if_it_reads_nothing_of_what_was_read(
    before: list[dict[str, str]], now: list[dict[str, str]], other: bool
) -> None:
    assert is_other(read_by(before), read_by(now)) is other


def test_what_is_read_has_one_order() -> None:
    assert read_by([B, A]) == read_by([A, B]) == [("subscribe", "a"), ("subscribe", "b")]
