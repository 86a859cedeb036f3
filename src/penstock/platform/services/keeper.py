"""Keeps one service open: what ends it is told, and it is opened again after a pause."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.platform.restarts import Restarts
from penstock.platform.services.switch import ServiceSwitch
from penstock.platform.services.table import Runner
from penstock.platform.settings import ServiceConfig

if TYPE_CHECKING:
    from penstock.http.service import OpenService

log = logging.getLogger("penstock.services")


class ServiceKeeper:
    """One service behind its switch."""

    def __init__(
        self,
        switch: ServiceSwitch,
        runner: Runner,
        config: ServiceConfig,
        *,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._switch = switch
        self._runner = runner
        self._config = config
        self._pause = pause
        self._opened: OpenService | None = None
        self._restarts = Restarts()

    async def keep(self) -> None:
        """Until it is cancelled; then the service is left in good order."""
        clock = asyncio.get_running_loop().time
        while True:
            began_s = clock()
            try:
                await self._open()
            except Exception as error:  # noqa: BLE001  (whatever it is, the others go on)
                self._tell(error, lived_s=clock() - began_s)
            await self._pause(self._restarts.pause_s)

    def end_streams(self) -> None:
        """Before the server stops: answers that have no end would hold it up."""
        if self._opened is not None:
            self._opened.end_streams()

    async def _open(self) -> None:
        """Open, serve and wait; raises what ends it."""
        async with self._runner.open(self._config) as self._opened:
            try:
                self._switch.serve(self._opened.app)
                log.info("%s is open", self._switch.name)
                await (self._opened.failing or asyncio.Event().wait())
            finally:
                self._switch.refuse()
                self._opened = None

    def _tell(self, error: Exception, *, lived_s: float) -> None:
        self._restarts = self._restarts.after_end(lived_s=lived_s)
        reason = str(error) or type(error).__name__
        self._switch.refuse(reason)
        log.error(
            "%s failed and is opened again in %g s: %s",
            self._switch.name,
            self._restarts.pause_s,
            reason,
            # Our own errors are sentences; of others the place says more.
            exc_info=None if isinstance(error, PenstockError) else error,
        )
