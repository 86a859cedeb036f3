"""Syslog messages of both kinds, and of none."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.connectors.syslog.messages import read_message

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_message_of_rfc_5424_with_all_its_parts() -> None:
    text = (
        "<165>1 2025-10-11T22:14:15.003+02:00 web.example.com evnt 811 ID47 "
        '[exampleSDID@32473 iut="3" eventSource="A \\"b\\" \\] \\\\"][x] \ufeffAn entry'
    )
    read = read_message(text, NOW)
    assert (read.type, read.facility, read.level, read.version) == ("RFC5424", 20, 5, 1)
    assert read.date == datetime(2025, 10, 11, 20, 14, 15, 3000, tzinfo=UTC)
    assert (read.host, read.app_name, read.process_id, read.message_id) == (
        *("web.example.com", "evnt", "811", "ID47"),
    )
    sent = {"iut": "3", "eventSource": 'A "b" ] \\'}
    assert read.structured_data == {"exampleSDID@32473": sent, "x": {}}
    assert read.message == "An entry"


def test_a_message_of_rfc_5424_with_nothing_but_its_head() -> None:
    read = read_message("<0>1 - - - - - -", NOW)
    assert read.type == "RFC5424" and read.message == "" and read.structured_data == {}
    assert read.date is read.host is read.app_name is read.process_id is None


@pytest.mark.parametrize(
    ("day", "year"), [("Jan  1", 2026), ("Jan  3", 2026), ("Jan  5", 2025), ("Dec 31", 2025)]
)
def test_a_message_of_rfc_3164_gets_the_year_that_fits(day: str, year: int) -> None:
    read = read_message(f"<34>{day} 01:02:03 mymachine su[77]: 'su root' failed", NOW)
    assert (read.type, read.facility, read.level) == ("RFC3164", 4, 2)
    assert (read.host, read.app_name, read.process_id) == ("mymachine", "su", "77")
    assert read.message == "'su root' failed"
    assert read.date is not None and read.date.year == year


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "<192>1 - - - - - -",
        "<13>hello",
        "<13>1 - - - - - [x",
        "<13>Foo  1 00:00:00 h x",
        "<13>Feb 31 00:00:00 h x",
    ],
)
def test_what_is_neither_is_kept_as_it_is(text: str) -> None:
    read = read_message(text, NOW)
    assert read.type == "UNKNOWN" and text.endswith(read.message)


@given(st.text(max_size=200), st.sampled_from(["", "<13>", "<13>1 ", "<13>Jan  1 00:00:00 "]))
def test_nothing_that_comes_is_an_error(text: str, head: str) -> None:
    assert read_message(head + text, NOW).type in ("RFC5424", "RFC3164", "UNKNOWN")
