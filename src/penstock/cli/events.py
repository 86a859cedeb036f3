"""Events as lines of JSON, for programs that watch a tool at work."""

import json
import sys
import threading
import time

_writing = threading.Lock()


def emit(name: str, **fields: object) -> None:
    """Print one event at once; lines of several threads do not mix."""
    line = event_line(name, timestamp_ms=int(time.time() * 1000), **fields)
    with _writing:
        sys.stdout.write(line)
        sys.stdout.flush()


def event_line(name: str, *, timestamp_ms: int, **fields: object) -> str:
    """The event as Kafka's tools write it: time and name first, no blanks."""
    event = {"timestamp": timestamp_ms, "name": name, **fields}
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n"
