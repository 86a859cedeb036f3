"""Records and notices in the forms of a stream."""

from penstock.rest.v3.streams.frames import Framing


def test_an_event_carries_where_to_resume_if_that_is_told() -> None:
    assert Framing.SSE.record(b"{}", "0-1") == b"id: 0-1\ndata: {}\n\n"
    assert Framing.SSE.record(b"{}", None) == b"data: {}\n\n"


def test_other_forms_are_lines() -> None:
    assert Framing.NDJSON.record(b"{}", "0-1") == b"{}\n"
    assert Framing.WEBSOCKET.record(b"{}", "0-1") == b"{}\n"


def test_a_notice_is_told_from_a_record() -> None:
    assert Framing.SSE.notice("slow", {"next": "0-1"}) == b'event: slow\ndata: {"next":"0-1"}\n\n'
    assert Framing.NDJSON.notice("slow", {"next": "0-1"}) == b'{"event":"slow","next":"0-1"}\n'
