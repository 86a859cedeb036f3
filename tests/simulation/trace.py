"""What happened in a run, as a hash to compare runs by and, when asked, as lines to read."""

from collections import Counter
from collections.abc import Callable
from hashlib import blake2b


class Trace:
    def __init__(self, now_s: Callable[[], float], *, is_shown: bool = False) -> None:
        self.counts: Counter[str] = Counter()
        self._now_s = now_s
        self._hash = blake2b(digest_size=8)
        self._is_shown = is_shown

    def note(self, kind: str, *facts: object) -> None:
        self.counts[kind] += 1
        line = f"{self._now_s():.6f} {kind} {' '.join(map(str, facts))}"
        self._hash.update(line.encode())
        if self._is_shown:
            print(line, flush=True)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()
