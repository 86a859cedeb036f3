"""What a pattern writes it reads."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.functions.java_time.formatting import format_moment
from penstock.sql.functions.java_time.parsing import read_fields
from penstock.sql.functions.java_time.pattern import read_pattern

MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
)


@pytest.mark.parametrize(
    "pattern",
    [
        "yyyy-MM-dd'T'HH:mm:ss.SSSX", "yyyyMMddHHmmssSSS", "EEEE d MMMM uuuu h:mm:ss a SSS",
        "d/M/y k:m:s.SSS xxx", "yyyy DDD A", "QQQ yyyy-MM-dd [HH:mm][:ss][.SSS]",
    ],
)  # fmt: skip
@given(moment=MOMENTS)
def test_a_moment_that_is_written_is_read_back(pattern: str, moment: datetime) -> None:
    fields = read_fields(format_moment(read_pattern(pattern), moment), pattern)
    assert datetime.combine(fields.date(), fields.time(), UTC) == moment


@pytest.mark.parametrize("pattern", ["w", "YYYY", "e"])
def test_what_can_only_be_written_is_told(pattern: str) -> None:
    with pytest.raises(ValueError, match="can be written and not read"):
        read_fields("1", pattern)


def test_a_long_text_is_refused_before_it_is_read() -> None:
    with pytest.raises(ValueError, match="could not be parsed"):
        read_fields("1" * 1_000_000, "yyyy")
    with pytest.raises(ValueError, match="longer than"):
        read_pattern("y" * 1_000)
