"""librdkafka's words on brokers that cannot be reached: the first is logged, the rest are counted.

librdkafka tries again several times a second and logs every failure. Whether a broker answers again
it does not say; the statistics that it emits every second do.
"""

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field

# Apart from all else that clients log, so that a tool can show these lines and no others.
log = logging.getLogger("penstock.client.connections")

_FAILURE = re.compile(
    r"(?:\[thrd:[^\]]*\]: )?(?:\w+Coordinator: )?(?P<name>[^\s/]+:\d+)(?:/\S+)?: "
    r"(?P<what>Connect to \w+#(?P<address>\S+) failed: .*?|Failed to resolve .*?"
    r"|Connection setup timed out.*?)(?: \(after .*\))?$"
)
_NOTE = "; it is tried again, and further failures are counted, not logged"


@dataclass(slots=True)
class _Unreached:
    """A broker that could not be reached: its names, what was logged, how much was not."""

    names: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)
    count: int = 0


class ConnectionLog:
    """The logger of one client of librdkafka, in the form that its binding calls it."""

    def __init__(self, otherwise: logging.Logger) -> None:
        self._otherwise = otherwise
        self._unreached: list[_Unreached] = []

    def log(self, level: int, form: str, facility: str, client: str, text: str) -> None:
        """A line of librdkafka."""
        found = _FAILURE.match(text) if facility == "FAIL" else None
        if found is None:
            self._otherwise.log(level, form, facility, client, text)
            return
        names = {name for name in (found["name"], found["address"]) if name}
        broker = self._broker(names)
        # One name may stand for several addresses, which are tried in turn: that is one failure.
        reason = re.sub(r"Connect to \S+ failed", "Connect failed", found["what"])
        if reason in broker.reasons:
            broker.count += 1
            return
        broker.reasons.add(reason)
        log.log(level, "[%s] %s: %s%s", client, found["name"], found["what"], _NOTE)

    def watch(self, take: Callable[[str], None]) -> Callable[[str], None]:
        """A taker of statistics that looks in them for brokers that answer again."""

        def look_and_take(text: str) -> None:
            if self._unreached:
                self._look(json.loads(text))
            take(text)

        return look_and_take

    def close(self) -> None:
        """Tell what was counted of brokers that never answered again."""
        for broker in self._unreached:
            if broker.count:
                log.warning(
                    "%s was not reached in %d more attempts.", _listed(broker), broker.count
                )
        self._unreached.clear()

    def _look(self, statistics: dict[str, object]) -> None:
        brokers = statistics.get("brokers")
        found = brokers.values() if isinstance(brokers, dict) else ()
        up = {one["nodename"] for one in found if one["state"] == "UP"}
        for broker in [one for one in self._unreached if one.names & up]:
            self._unreached.remove(broker)
            more = f" after {broker.count} more failures" if broker.count else ""
            log.warning("%s answers again%s.", _listed(broker), more)

    def _broker(self, names: set[str]) -> _Unreached:
        for known in self._unreached:
            if known.names & names:
                known.names |= names
                return known
        self._unreached.append(_Unreached(names=names))
        return self._unreached[-1]


def _listed(broker: _Unreached) -> str:
    return "/".join(sorted(broker.names))
