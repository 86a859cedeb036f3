"""How much loggers print, under Kafka's words; changed by requests to one worker or to all."""

import logging
import time
from typing import Any

LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
ROOT = "root"


class LoggerLevels:
    """Levels are Python's logging; what was changed keeps the word that was given."""

    def __init__(self) -> None:
        self._changed: dict[str, tuple[str, int]] = {}  # The word, and when.

    def change(self, name: str, level: str) -> list[str]:
        """Change one and what is below it, and name them all.

        A level that is none is left out, whoever wrote it. Below root are all loggers.
        """
        if level not in LEVELS:
            return []
        name = _plain(name)
        now_ms = time.time_ns() // 1_000_000
        for one in (name, *sorted(self._with_levels() - {name})):
            if one == name or _is_below(one, name):
                logging.getLogger(None if one == ROOT else one).setLevel(LEVELS[level])
                self._changed[one] = (level, now_ms)
        return sorted({name, *(one for one in _loggers() if _is_below(one, name))})

    def names(self) -> list[str]:
        """All that have a level of their own."""
        return [ROOT, *sorted(self._with_levels() - {ROOT})]

    def has(self, name: str) -> bool:
        """Whether a logger has a level of its own."""
        return _plain(name) in self.names()

    def document(self, name: str) -> dict[str, Any]:
        """What `GET /admin/loggers/x` answers."""
        name = _plain(name)
        if name in self._changed:
            level, changed_ms = self._changed[name]
            return {"level": level, "last_modified": changed_ms}
        effective = logging.getLogger(None if name == ROOT else name).getEffectiveLevel()
        words = (word for word, number in LEVELS.items() if word != "TRACE" and number >= effective)
        return {"level": next(words, "OFF"), "last_modified": None}

    def _with_levels(self) -> set[str]:
        return {name for name, one in _loggers().items() if one.level} | set(self._changed)


def _plain(name: str) -> str:
    return ROOT if name.lower() == ROOT else name


def _is_below(name: str, other: str) -> bool:
    return other == ROOT or name.startswith(f"{other}.")


def _loggers() -> dict[str, logging.Logger]:
    known = logging.Logger.manager.loggerDict.items()
    return {name: one for name, one in known if isinstance(one, logging.Logger)}
