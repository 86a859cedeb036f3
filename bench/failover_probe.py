"""How long a partition is without a leader that takes writes, seen from outside.

The probe knocks at every broker that lives, again and again, with one small record for all
replicas in sync, until one of them has acknowledged it. It keeps no list of leaders and has no
pause of its own, so that what it shows is the cluster's time, not a client's.
"""

import threading
import time
from collections.abc import Sequence

from tests.support.batches import batch
from tests.support.wire import RawConnection, WireError

ALL_IN_SYNC = -1
_KNOCK_S = 0.005
_ANSWER_S = 5.0


class Probe(threading.Thread):
    """Writes to one partition at the brokers of these ports until one acknowledges."""

    def __init__(self, topic: str, partition: int, ports: Sequence[int], give_up_s: float) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.partition = partition
        self.ports = ports
        self.give_up_s = give_up_s
        self.acknowledged_s: float | None = None  # On the clock of time.perf_counter.
        self.last_seen = ""

    def run(self) -> None:
        record = batch([b"probe"], timestamp=int(time.time() * 1000))
        connections: dict[int, RawConnection] = {}
        until_s = time.perf_counter() + self.give_up_s
        while time.perf_counter() < until_s:
            for port in self.ports:
                if self._knock(connections, port, record):
                    self.acknowledged_s = time.perf_counter()
                    return
            time.sleep(_KNOCK_S)

    def _knock(self, connections: dict[int, RawConnection], port: int, record: bytes) -> bool:
        try:
            if port not in connections:
                connections[port] = RawConnection(port, timeout_s=_ANSWER_S)
            at = (self.topic, self.partition)
            answer = connections[port].produce({at: record}, acks=ALL_IN_SYNC)[at]
        except (WireError, OSError) as error:
            self.last_seen = str(error)
            connections.pop(port, None)
            return False
        self.last_seen = f"error {answer.error_code} at {port}"
        return answer.error_code == 0


def seconds_without(probes: Sequence[Probe], killed_s: float, *, timeout_s: float) -> list[float]:
    """From the kill to each probe's acknowledgement."""
    for probe in probes:
        probe.join(timeout_s)
    found = [
        probe.acknowledged_s - killed_s for probe in probes if probe.acknowledged_s is not None
    ]
    if len(found) < len(probes):
        late = next(probe for probe in probes if probe.acknowledged_s is None)
        seen = f"{late.topic}-{late.partition}: {late.last_seen}"
        raise RuntimeError(f"no write was acknowledged within {timeout_s:g} s; {seen}")
    return found
