"""How queries are doing that another server of the service runs: that one is asked.

A server that is asked for a login by its fellow, or does not reach it, knows nothing: the state of
its queries is UNRESPONSIVE then, as in ksqlDB.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, get_args
from urllib.error import URLError
from urllib.request import urlopen

from penstock.sql.running.ports import QueryHealth, QueryState

PEER_PATH: Final = "/penstock/query-states"
UNKNOWN: Final = QueryHealth(state="UNRESPONSIVE")
_TIMEOUT_S: Final = 2.0
_FRESH_S: Final = 1.0
_ANSWER_BYTES_MAX: Final = 4 << 20


class PeerStates:
    """Asks at most once a second; any thread may ask."""

    def __init__(self, runner_url: Callable[[], str | None]) -> None:
        self._runner_url = runner_url
        self._lock = threading.Lock()
        self._known: Mapping[str, QueryHealth] = {}
        self._due_s = 0.0

    def health(self, query_id: str) -> QueryHealth:
        """Of one query, as its server tells it."""
        with self._lock:
            if time.monotonic() >= self._due_s:
                self._known = self._asked()
                self._due_s = time.monotonic() + _FRESH_S
            return self._known.get(query_id, UNKNOWN)

    def _asked(self) -> Mapping[str, QueryHealth]:
        url = self._runner_url()
        if url is None:
            return {}
        try:
            with urlopen(url + PEER_PATH, timeout=_TIMEOUT_S) as answer:
                return read_states(answer.read(_ANSWER_BYTES_MAX))
        except (URLError, OSError, ValueError):
            return {}


def states_document(states: Mapping[str, QueryHealth]) -> dict[str, object]:
    """What the one tells the other."""
    return {
        name: {"state": one.state, "failures": list(one.failures), "rows": one.rows}
        for name, one in states.items()
    }


def read_states(data: bytes) -> dict[str, QueryHealth]:
    """What the other understands; ValueError for what is none of it."""
    try:
        return {
            str(name): QueryHealth(
                state=one["state"] if one["state"] in get_args(QueryState) else "UNRESPONSIVE",
                failures=tuple(map(str, one["failures"])),
                rows=int(one["rows"]),
            )
            for name, one in json.loads(data).items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no states of queries: {error}") from None
