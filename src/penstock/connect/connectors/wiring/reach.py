"""A server that is out of reach for a while: the same again for so long, then the task fails.

While it lasts the task stays RUNNING and tries; what fails for longer is told as the state of the
task, with the reason.
"""

import time
from collections.abc import Callable

from penstock.connect.errors.kinds import ConnectError, RetriableConnectError


class ServerReach:
    """Whether a server was there of late."""

    def __init__(
        self, server: str, limit_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server = server
        self._limit_s = limit_s
        self._clock = clock
        self._lost_s: float | None = None  # None: it answers.

    def answered(self) -> None:
        """It is there."""
        self._lost_s = None

    def failed(self, error: BaseException) -> ConnectError:
        """What to raise: later, or no more."""
        now_s = self._clock()
        self._lost_s = now_s if self._lost_s is None else self._lost_s
        away_s = now_s - self._lost_s
        reason = f"{self._server} is out of reach: {error or type(error).__name__}"
        if away_s > self._limit_s:
            return ConnectError(f"{reason} (for {away_s:.0f} s)")
        return RetriableConnectError(reason)
