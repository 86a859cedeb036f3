"""Why a query failed, in one sentence, and at which record if it is known.

Spark hands over pages: a Java trace around a Python trace around the sentence that matters. Ours
name topic, partition and offset; for errors of others the offsets of the failed batch are read from
the checkpoint, which narrows the search to a handful of records.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

from penstock.spark.start.slow_start import SLOW_START, is_slow_start

# "pkg.mod.SomeError: text" at the beginning of a line, as Python ends its traces.
_PYTHON_END = re.compile(r"^(?:[a-z_][\w]*\.)*([A-Z]\w*): (.*)$")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9]*_[A-Z0-9_.]+)\] ?")
_RECORD = re.compile(r"-\d+@\d+|\boffset \d+")  # As our own errors name a record.
_SENTENCE_MAX = 600
# Spark wraps what happened in these; the cause says more.
_WRAPPERS = ("STREAM_FAILED", "WRITING_JOB_ABORTED", "TASK_WRITE_FAILED", "PYTHON_STREAMING")
# A new attempt would end the same way: the plan or an option is wrong, not the moment.
_PERMANENT = (
    "OptionError",
    "ConfigError",
    "AnalysisException",
    "UNRESOLVED_COLUMN",
    "UNSUPPORTED_",
    "STREAMING_OUTPUT_MODE",
    "DATATYPE_MISMATCH",
    "PARSE_SYNTAX_ERROR",
    "INVALID_WRITE_",
    "INVALID_INTERVAL_FORMAT",
    "does not support",
    "Set errors.dead.letter.queue.topic.name",  # A stage of Streams was told to stop there.
)


class FailedRange(NamedTuple):
    """Offsets [start, end) of a partition."""

    topic: str
    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        last = self.end - 1
        where = f"offset {self.start}" if last == self.start else f"offsets {self.start} to {last}"
        return f"{self.topic}-{self.partition} {where}"


class QueryFailure(NamedTuple):
    """What is told of a failure."""

    sentence: str
    is_permanent: bool
    is_slow_start: bool = False  # The machine was busy; nothing is wrong with the query.


def failure_of(text: str, checkpoint: Path | None = None) -> QueryFailure:
    """The failure behind an error's text; with the failed batch's offsets if it names none."""
    if is_slow_start(text):
        return QueryFailure(SLOW_START, is_permanent=False, is_slow_start=True)
    sentence = sentence_of(text)
    is_permanent = any(word in text.partition("\n")[0] or word in sentence for word in _PERMANENT)
    if not _RECORD.search(sentence) and not is_permanent and checkpoint is not None:
        batch, ranges = failed_batch(checkpoint)
        if ranges:
            sentence += f" (in batch {batch}: {', '.join(str(one) for one in ranges)})"
    return QueryFailure(sentence, is_permanent)


def sentence_of(text: str) -> str:
    """The one line of an error's text that says what happened."""
    python = _last_python_error(text)
    if python:
        return _shortened(python)
    condition = _innermost_condition(text)
    if condition is not None:
        name, rest = condition
        return _shortened(f"{_first_paragraph(rest)} [{name}]")
    return _shortened(_first_paragraph(text))


def failed_batch(checkpoint: Path) -> tuple[int, list[FailedRange]]:
    """The batch that was begun and never committed, and what it was to read."""
    begun, done = _batches(checkpoint / "offsets"), _batches(checkpoint / "commits")
    if not begun or (done and done[-1] >= begun[-1]):
        return -1, []
    batch = begun[-1]
    ends = _offsets(checkpoint / "offsets" / str(batch))
    starts = _offsets(checkpoint / "offsets" / str(batch - 1)) if batch else {}
    ranges = [
        FailedRange(topic, partition, starts.get((topic, partition), 0), end)
        for (topic, partition), end in sorted(ends.items())
    ]
    return batch, [one for one in ranges if one.end > one.start]


def _last_python_error(text: str) -> str | None:
    """The end of the last Python trace: the error's line and what follows up to Java's words."""
    lines = text.splitlines()
    if not any("Traceback (most recent call last)" in line for line in lines):
        return None
    found: list[str] = []
    for at, line in enumerate(lines):
        match = _PYTHON_END.match(line.strip()) if not line.startswith((" ", "\t")) else None
        if match and match.group(1) not in ("Traceback", "Caused"):
            found = [_named(match.group(1), match.group(2)), *_continued(lines[at + 1 :])]
            if match.group(1) not in ("Py4JJavaError", "PythonException"):
                break  # The first trace is the worker's; the ones after it only pass it on.
    return " ".join(found) or None


def _continued(lines: list[str]) -> list[str]:
    rest: list[str] = []
    for line in lines:
        if not line.strip() or line.startswith(("\t", " ", "Traceback", "SQLSTATE")):
            break
        rest.append(line.strip())
    return rest


def _named(kind: str, text: str) -> str:
    """Our own errors are sentences already; of others the kind says something."""
    return text if kind in _OUR_ERRORS or len(text.split()) > 12 else f"{kind}: {text}"


_OUR_ERRORS = frozenset({"DecodeError", "CommandError", "ConfigError", "PenstockError"})


def _innermost_condition(text: str) -> tuple[str, str] | None:
    """The first of Spark's named conditions that is no wrapper around another."""
    found = [(m.group(1), text[m.end() :].partition("\n")[0]) for m in _CONDITION.finditer(text)]
    inner = [one for one in found if not one[0].startswith(_WRAPPERS)]
    return inner[0] if inner else None


def _first_paragraph(text: str) -> str:
    kept: list[str] = []
    for line in text.strip().splitlines():
        if not line.strip() or line.startswith(("\tat ", "===", "JVM stacktrace")):
            break
        kept.append(line.strip())
    joined = " ".join(kept)
    return re.sub(r" ?SQLSTATE: \w+$", "", joined)


def _shortened(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip()
    return text if len(text) <= _SENTENCE_MAX else text[: _SENTENCE_MAX - 1] + "…"


def _batches(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return sorted(int(child.name) for child in folder.iterdir() if child.name.isdigit())


def _offsets(file: Path) -> dict[tuple[str, int], int]:
    """The offsets of one entry of Spark's log: a version, its own settings, then each source's."""
    if not file.is_file():
        return {}
    found: dict[tuple[str, int], int] = {}
    for line in file.read_text().splitlines()[2:]:
        try:
            document = json.loads(line)
        except ValueError:
            continue  # "-" stands for a source without data.
        found.update(by_partition(document))
    return found


def by_partition(document: object) -> dict[tuple[str, int], int]:
    """`{"topic": {"0": 5}}` flat; anything else is empty."""
    if not isinstance(document, dict):
        return {}
    return {
        (topic, int(partition)): int(offset)
        for topic, partitions in document.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
        if str(partition).isdigit() and isinstance(offset, int | str) and str(offset).isdigit()
    }
