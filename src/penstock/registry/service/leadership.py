"""Who leads, as this instance knows it: told by the group, asked by every write.

An instance believes that it leads for as long as its last heartbeat carries: one that was paused
finds the time over when it wakes. That belief only keeps it from trying; what keeps two leaders
apart is the term in which a leader writes (`registry/service/topic.py`).
"""

import asyncio
import time

from penstock.registry import errors
from penstock.registry.election import InstanceIdentity


class Leadership:
    """The leader of the group; used on the event loop alone."""

    def __init__(self) -> None:
        self.leader: InstanceIdentity | None = None  # None: nobody leads, or nobody knows who.
        self._is_us = False
        self._leads_until_s = 0.0  # On the clock of `time.monotonic`.
        self._changed = asyncio.Event()

    @classmethod
    def alone(cls) -> "Leadership":
        """Of an instance without a group."""
        made = cls()
        made._is_us, made._leads_until_s = True, float("inf")
        return made

    @property
    def is_chosen(self) -> bool:
        """Whether the last election was ours."""
        return self._is_us

    def is_leading(self) -> bool:
        """Whether we lead and the group still knows us."""
        return self._is_us and time.monotonic() < self._leads_until_s

    def assign(self, leader: InstanceIdentity | None, *, is_us: bool, until_s: float) -> None:
        """An election's outcome."""
        self.leader, self._is_us, self._leads_until_s = leader, is_us, until_s
        self._tell()

    def extend(self, until_s: float) -> None:
        """A heartbeat was answered."""
        was_leading = self.is_leading()
        self._leads_until_s = until_s
        if self.is_leading() and not was_leading:
            self._tell()

    def forget(self) -> None:
        """We are no member any more; who leads is not known."""
        self.assign(None, is_us=False, until_s=0.0)

    async def wait_for_change(self, deadline_s: float) -> None:
        """Until something changes; RegistryError 50004 when the deadline comes first."""
        changed = self._changed
        try:
            async with asyncio.timeout_at(deadline_s):
                await changed.wait()
        except TimeoutError:
            raise errors.leader_unknown() from None

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
