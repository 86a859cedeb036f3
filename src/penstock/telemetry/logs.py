"""Log lines in Apache Kafka's form, on standard output, with a level for each logger.

    [2026-11-15 20:05:38,123] INFO [KafkaServer id=0] started (kafka.server.KafkaServer)

Everybody else logs with Python's `logging`; here it is set up, and levels are read and changed
while the process runs.
"""

import logging
import os
import sys
import time
from collections.abc import Mapping
from typing import Final, TextIO

from penstock.errors import ConfigError

TRACE: Final = 5
ROOT: Final = "root"
VARIABLE: Final = "PENSTOCK_LOG"

LEVELS: Final[Mapping[str, int]] = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_NAMES: Final = {number: name for name, number in LEVELS.items()}
_OTHER_NAMES: Final = {"WARNING": "WARN", "CRITICAL": "FATAL", "ALL": "TRACE"}


class KafkaFormatter(logging.Formatter):
    """One line a record; a text of several lines and a traceback stay as they are."""

    def __init__(self) -> None:
        super().__init__()
        self._second = -1
        self._stamp = ""

    def format(self, record: logging.LogRecord) -> str:
        """The line, with the date worked out only once a second."""
        second = int(record.created)
        if second != self._second:
            self._stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
            self._second = second
        millis = int((record.created - second) * 1000)
        level = _NAMES.get(record.levelno, record.levelname)
        text = record.getMessage()
        line = f"[{self._stamp},{millis:03d}] {level} {text} ({record.name})"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return f"{line}\n{record.stack_info}" if record.stack_info else line


class OutputHandler(logging.Handler):
    """Writes to a stream; who closed the other end of it does not hear from us again."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self.setFormatter(KafkaFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        """One write a record, so that lines of two processes on one file do not mix."""
        line = self.format(record)
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):
            # A log that cannot be written is no reason to stop serving.
            return


def set_up_logging(
    levels: Mapping[str, str] | None = None, *, stream: TextIO | None = None
) -> None:
    """Send all logging to standard output; `levels` are by logger, `root` stands for all others.

    The variable PENSTOCK_LOG is read too, as in `INFO,kafka.request=DEBUG`; `levels` win over it.
    """
    chosen = {ROOT: "INFO", **parse_levels(os.environ.get(VARIABLE, "")), **(levels or {})}
    for name, level in chosen.items():
        level_number(level, name)
    _leave_out_what_no_line_shows()
    root = logging.getLogger()
    for handler in [h for h in root.handlers if isinstance(h, OutputHandler)]:
        root.removeHandler(handler)
    root.addHandler(OutputHandler(stream or sys.stdout))
    for name, level in chosen.items():
        set_level(name, level)


def parse_levels(text: str) -> dict[str, str]:
    """`WARN,kafka.request=DEBUG` as levels by logger; a level alone is for the root."""
    levels: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, level = part.rpartition("=")
        levels[name.strip() if equals else ROOT] = level.strip()
    return levels


def level_number(level: str, logger: str) -> int:
    """The number of a level's name; ConfigError names the logger and the levels there are."""
    name = _OTHER_NAMES.get(level.upper(), level.upper())
    if name not in LEVELS:
        allowed = ", ".join(LEVELS)
        raise ConfigError(f"the log level of {logger} is {level}: it must be one of {allowed}")
    return LEVELS[name]


def set_level(name: str, level: str | None) -> None:
    """Set the level of a logger now; None gives it back to the logger above it."""
    logger = logging.getLogger(None if name == ROOT else name)
    logger.setLevel(logging.NOTSET if level is None else level_number(level, name))


def levels() -> dict[str, str]:
    """Every logger there is and the level it has, its own or the one above it."""
    found = {ROOT: _name(logging.getLogger().level)}
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            found[name] = _name(logger.getEffectiveLevel())
    return found


def _name(number: int) -> str:
    """A level between two of ours is told as the lower one, which lets at least as much through."""
    below = [name for name, least in LEVELS.items() if least <= number]
    return below[-1] if below else "TRACE"


def _leave_out_what_no_line_shows() -> None:
    # The logging manual's own advice: who does not print these need not collect them.
    logging.logThreads = False
    logging.logMultiprocessing = False
    logging.logProcesses = False
    logging._srcfile = None
    logging.addLevelName(TRACE, "TRACE")
