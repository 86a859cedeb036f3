"""For tools that run until they are told to stop, and then end in good order."""

import signal
import threading
from types import FrameType


def stop_on_signals() -> threading.Event:
    """An event that is set by SIGTERM or SIGINT; whoever sleeps by waiting for it wakes up."""
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    return stop
