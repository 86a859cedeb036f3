"""Another client on the same broker, which must never notice what the test does to it."""

import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.batches import batch, record, stored_batches
from tests.support.broker import BrokerProcess
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

CANARY = "canary"


class Neighbour:
    """Writes a record and reads it back, over and over, on one connection."""

    def __init__(self, broker: BrokerProcess, *, timeout_s: float = 60) -> None:
        self.broker = broker
        self.timeout_s = timeout_s
        self.sent = 0
        self.problem: BaseException | None = None
        self.stopping = threading.Event()

    def run(self) -> None:
        """Until `stopping` is set, or something is not as it should be."""
        try:
            with RawConnection(self.broker.port, timeout_s=self.timeout_s) as connection:
                while not self.stopping.wait(0.01):
                    value = b"%d" % self.sent
                    # An old record would be gone when retention looks before it is read back.
                    written = batch([value], timestamp=time.time_ns() // 1_000_000)
                    offset = connection.produce_one(CANARY, written, acks=-1)
                    assert offset == self.sent, f"wrote at {offset} instead of {self.sent}"
                    answer = connection.fetch(CANARY, offset)
                    found = next(stored_batches(answer.records), None)
                    assert found is not None, f"nothing to read at {offset}: {answer}"
                    assert found.records == record(0, value), f"read {found} at {offset}"
                    self.sent += 1
        except (OSError, AssertionError, struct.error) as problem:
            self.problem = problem


@contextmanager
def neighbour_at_work(broker: BrokerProcess, *, timeout_s: float = 60) -> Iterator[Neighbour]:
    """A neighbour that works from before until after; it has got on, and nothing went wrong."""
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(CANARY) == 0
    neighbour = Neighbour(broker, timeout_s=timeout_s)
    thread = threading.Thread(target=neighbour.run)
    thread.start()
    try:
        eventually(lambda: neighbour.sent > 0 or neighbour.problem, timeout_s=60)
        yield neighbour
        sent = neighbour.sent
        eventually(lambda: neighbour.sent > sent or neighbour.problem, timeout_s=60)
    finally:
        neighbour.stopping.set()
        thread.join(60)
    assert neighbour.problem is None, repr(neighbour.problem)
