"""The clock and chance of this machine, and the functions that a service knows.

What a query takes along to Spark's workers is pickled, so these are plain functions of a module.
"""

import logging
import secrets
import threading
import time
from pathlib import Path
from typing import Final

from penstock.sql.functions.built_in import built_in
from penstock.sql.functions.table import FunctionTable, Surroundings
from penstock.sql.functions.user.loading import UserFunctions

log = logging.getLogger("penstock.sql")

_LOOK_S: Final = 1.0


def now_ms() -> int:
    """The time of this machine."""
    return time.time_ns() // 1_000_000


def random() -> float:
    """Chance, from 0 to 1, without 1."""
    return secrets.SystemRandom().random()


def machine_functions() -> FunctionTable:
    """ksqlDB's functions with the clock and the chance of whoever calls them."""
    return built_in(Surroundings(now_ms=now_ms, random=random, random_bytes=secrets.token_bytes))


class FunctionShelf:
    """The functions of a service: ksqlDB's, and those of a directory, read again when it changes.

    A query that runs keeps the functions that it began with.
    """

    def __init__(self, directory: Path | None) -> None:
        self._known = machine_functions()
        self._table = self._known
        taken = frozenset(function.name.upper() for function in self._known.all())
        self._user = None if directory is None else UserFunctions(directory, taken)
        self._due_s = 0.0
        self._lock = threading.Lock()

    def table(self) -> FunctionTable:
        """All functions as they are now."""
        with self._lock:
            if self._user is not None and time.monotonic() >= self._due_s:
                self._refresh(self._user)
                self._due_s = time.monotonic() + _LOOK_S
            return self._table

    def _refresh(self, user: UserFunctions) -> None:
        found = user.refresh()
        if not found.has_changed:
            return
        for error in found.errors:
            log.error("A user function cannot be used: %s", error)
        self._table = self._known.with_functions(found.functions)
