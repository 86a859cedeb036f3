"""Records and notices in the three forms of a stream.

Pure. A notice tells what is no record: that a reader was too slow, that records are gone, that the
proxy stops. In SSE it is an event of its own name, elsewhere a document with the field `event`.
"""

from enum import Enum
from typing import Any

from penstock.rest.json_text import dumps

HEARTBEAT = b":\n\n"


class Framing(Enum):
    """How a stream is written."""

    SSE = "text/event-stream"
    NDJSON = "application/x-ndjson"
    WEBSOCKET = "websocket"

    def record(self, text: bytes, position: str | None) -> bytes:
        """A record; position: where to resume after it, if that is to be told here."""
        if self is not Framing.SSE:
            return text + b"\n"
        if position is None:
            return b"data: " + text + b"\n\n"
        return b"id: " + position.encode() + b"\ndata: " + text + b"\n\n"

    def notice(self, event: str, said: dict[str, Any]) -> bytes:
        """A notice."""
        if self is Framing.SSE:
            return b"event: " + event.encode() + b"\ndata: " + dumps(said) + b"\n\n"
        return dumps({"event": event, **said}) + b"\n"
