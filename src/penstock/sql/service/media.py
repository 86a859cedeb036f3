"""The media types of ksqlDB's API."""

from collections.abc import Sequence
from typing import Final

from penstock.http.errors import NotAcceptable
from penstock.http.handlers import Request
from penstock.http.negotiation import negotiated

JSON: Final = "application/json"
KSQL_JSON: Final = "application/vnd.ksql.v1+json"
DELIMITED: Final = "application/vnd.ksqlapi.delimited.v1"
OFFERED: Final = (KSQL_JSON, JSON)


def media_of(request: Request, *preferred: str) -> str:
    """The media type to answer in: of those preferred, and plain JSON."""
    offered: Sequence[str] = (*preferred, *(one for one in OFFERED if one not in preferred))
    found = negotiated(request.headers.get("accept"), offered)
    if found is None:
        raise NotAcceptable(f"Offered here are: {', '.join(offered)}.")
    return found
