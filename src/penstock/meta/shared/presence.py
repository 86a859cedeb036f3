"""Which sessions have fallen silent: nobody's clock is compared with anybody else's.

Whoever listens counts its own looks. A look is made by the same event loop that hears the others,
so a machine that slept, a disk that stood still or a process that was stopped itself costs one
look and not somebody else's session. Pure: the caller makes the looks at a steady pace.
"""

from collections.abc import Collection


class Presence:
    """For each session how many looks in a row it was not heard."""

    def __init__(self, looks_max: int) -> None:
        self._looks_max = looks_max
        self._unheard: dict[int, int] = {}

    def heard(self, session_id: int) -> None:
        if session_id in self._unheard:
            self._unheard[session_id] = 0

    def keep(self, session_ids: Collection[int]) -> None:
        """These are there now; a new one begins as if it had just been heard."""
        self._unheard = {one: self._unheard.get(one, 0) for one in session_ids}

    def look(self) -> frozenset[int]:
        """One look later: who has been silent for too many of them."""
        for session_id in self._unheard:
            self._unheard[session_id] += 1
        return self.silent()

    def silent(self) -> frozenset[int]:
        return frozenset(one for one, looks in self._unheard.items() if looks >= self._looks_max)
