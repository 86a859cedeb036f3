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

    def set(self, name: str, level: str) -> None:
        """Change one; a level that is none is left out, whoever wrote it."""
        if level in LEVELS:
            logging.getLogger(None if name == ROOT else name).setLevel(LEVELS[level])
            self._changed[name] = (level, time.time_ns() // 1_000_000)

    def names(self) -> list[str]:
        """All that have a level of their own."""
        return [ROOT, *sorted(_set_loggers() | set(self._changed))]

    def document(self, name: str) -> dict[str, Any]:
        """What `GET /admin/loggers/x` answers."""
        if name in self._changed:
            level, changed_ms = self._changed[name]
            return {"level": level, "last_modified": changed_ms}
        effective = logging.getLogger(None if name == ROOT else name).getEffectiveLevel()
        words = (word for word, number in LEVELS.items() if word != "TRACE" and number >= effective)
        return {"level": next(words, "OFF"), "last_modified": None}


def below(name: str) -> list[str]:
    """What is set below a logger follows it."""
    if name == ROOT:
        return []
    return sorted(one for one in logging.Logger.manager.loggerDict if one.startswith(f"{name}."))


def _set_loggers() -> set[str]:
    known = logging.Logger.manager.loggerDict.items()
    return {name for name, one in known if isinstance(one, logging.Logger) and one.level}
