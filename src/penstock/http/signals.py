"""Signals to a process that serves: the first stops in good order, the second at once."""

import asyncio
import signal
from collections.abc import Callable

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stop_on_signals(stopping: asyncio.Event, also: Callable[[], object] = lambda: None) -> None:
    """Set the event, and do what else is to be done at once, when the first signal comes."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)  # The kernel's own way is to end the process.
            signal.signal(number, signal.SIG_DFL)
        stopping.set()
        also()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
