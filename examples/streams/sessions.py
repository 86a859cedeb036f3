"""Website sessions: clicks of one person with less than 30 minutes between them are one visit.

    penstock streams run examples/streams/sessions.py

Clicks come as {"page": "/"} under the person's name to `page-views`. A visit is written to
`page-visits` once, when it and ten minutes for late clicks are over. Keys are Kafka's session keys.
"""

from typing import Any

from penstock.streams import JSON, SessionWindows, StreamsBuilder

MINUTE_MS = 60_000


def add_page(person: str, click: dict[str, Any], pages: list[str]) -> list[str]:
    """The visit after one more click."""
    return [*pages, click["page"]]


builder = StreamsBuilder()
views = builder.stream("page-views").group_by_key()
visits = views.windowed_by_session(SessionWindows.of(30 * MINUTE_MS, grace_ms=10 * MINUTE_MS))
pages = visits.aggregate(
    list, add_page, lambda person, one, two: one + two, value=JSON, store="visits"
)
pages.suppress_until_window_closes().to_stream().to("page-visits", value=JSON)
topology = builder.build()
