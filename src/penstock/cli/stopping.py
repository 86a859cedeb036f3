"""For tools that run until they are told to stop, and then end in good order."""

import signal
import threading
from queue import SimpleQueue
from types import FrameType


def stop_on_signals() -> threading.Event:
    """An event that is set by SIGTERM or SIGINT; whoever sleeps by waiting for it wakes up.

    The handler runs in the main thread, maybe in the middle of its own `stop.wait()`, whose lock
    `stop.set()` would then wait for without end. So another thread sets it; the queue between the
    two may be used at any moment.
    """
    stop = threading.Event()
    asked: SimpleQueue[int] = SimpleQueue()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.put(number)

    def set_when_asked() -> None:
        asked.get()
        stop.set()

    threading.Thread(target=set_when_asked, name="stop on signals", daemon=True).start()
    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    return stop
