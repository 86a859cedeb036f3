"""What a task and its worker tell each other: one JSON document a line, in both directions.

| from the task | |
| `{"hello":<token>,"connector":..,"task":..,"run":..,"pid":..}` | first; a wrong token ends it |
| `{"state":"RUNNING"}` | how it is |
| `{"failed":<trace>}` | it ended by an error |
| `{"topic":<name>}` | it wrote to or read from a topic for the first time |
| `{"reconfigure":true}` | its connector should be asked for tasks anew |
| `{"offsets":[[key,value],...],"number":n}` | keep these |
| `{"counts":{<metric>:n,...}}` | what it has counted since it began |
| `{"verify":n}` | is this run still the one that may write? |

| from the worker | |
| `{"kept":n}` or `{"refused":n,"why":..}` | the answer to offsets and to verify |
| `{"command":"pause"}`, `resume`, `stop` | what the task is to do |
"""

import base64
import json
from collections.abc import Iterable
from typing import Any

from penstock.connect.store.config_records import LogEntry
from penstock.connect.store.json_text import DamagedEntry

LINE_BYTES_MAX = 8 << 20


def encode_line(document: dict[str, Any]) -> bytes:
    """A line to send."""
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def decode_line(line: bytes) -> dict[str, Any]:
    """What a line says; DamagedEntry if it is none of ours."""
    try:
        document = json.loads(line)
    except ValueError:
        raise DamagedEntry("a line between a task and its worker is not JSON") from None
    if not isinstance(document, dict):
        raise DamagedEntry("a line between a task and its worker is no object")
    return document


def encode_records(records: Iterable[LogEntry]) -> list[list[str | None]]:
    """Bytes as JSON can carry them."""
    return [[_text(record.key), _text(record.value)] for record in records]


def decode_records(document: object) -> list[LogEntry]:
    """The other way."""
    if not isinstance(document, list):
        raise DamagedEntry("a task sent offsets that are no list")
    return [LogEntry(_bytes(key) or b"", _bytes(value)) for key, value in document]


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def _bytes(text: object) -> bytes | None:
    return base64.b64decode(text) if isinstance(text, str) else None
