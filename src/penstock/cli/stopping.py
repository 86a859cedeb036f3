"""For tools that run until they are told to stop, and then end in good order."""

import signal
import threading
from queue import SimpleQueue
from types import FrameType
from typing import NamedTuple


class StopEvents(NamedTuple):
    """What signals ask for: an end in good order, and then an end at once."""

    stop: threading.Event
    hurry: threading.Event


def stop_on_signals() -> threading.Event:
    """An event that is set by SIGTERM or SIGINT; whoever sleeps by waiting for it wakes up."""
    return stop_and_hurry_on_signals().stop


def stop_and_hurry_on_signals() -> StopEvents:
    """Two events: the first SIGTERM, SIGINT or SIGHUP sets one, the second the other.

    The handler runs in the main thread, maybe in the middle of its own `stop.wait()`, whose lock
    `stop.set()` would then wait for without end. So another thread sets them; the queue between the
    two may be used at any moment.
    """
    events = StopEvents(threading.Event(), threading.Event())
    asked: SimpleQueue[int] = SimpleQueue()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.put(number)

    def set_when_asked() -> None:
        for event in events:
            asked.get()
            event.set()

    threading.Thread(target=set_when_asked, name="stop on signals", daemon=True).start()
    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # Under nohup it stays ignored.
        signal.signal(signal.SIGHUP, ask)
    return events
