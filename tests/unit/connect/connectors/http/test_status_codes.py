"""Lists of status codes, as they are configured."""

import pytest

from penstock.connect.connectors.http.status_codes import StatusRanges, wrong_ranges


def test_codes_and_ranges() -> None:
    found = StatusRanges.parse("404, 429,500-,-102")
    assert [code for code in (100, 102, 103, 404, 405, 429, 499, 500, 599) if code in found] == [
        *(100, 102, 404, 429, 500, 599)
    ]
    assert 404 not in StatusRanges.parse("")


@pytest.mark.parametrize("text", ["x", "99", "600", "500-400", "-", "4 0 4"])
def test_what_is_no_list_is_told(text: str) -> None:
    assert wrong_ranges(text)
