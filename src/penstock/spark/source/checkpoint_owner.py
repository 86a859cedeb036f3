"""Whose checkpoint it is, known from the moment a query starts.

Spark takes a query for the one that left the checkpoint, whatever it reads: the sink then finds the
batches of the other written already, and the source finds offsets of topics that it does not read.
After a batch the offsets tell; before it nothing does. So the first start leaves in the checkpoint
what the query reads, and a query that reads none of it is refused. One that reads more or less is
the same query: Spark lets topics be added.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from penstock.spark.options import OptionError
from penstock.spark.source.topic_ids import local_path

_FILE = "penstock-reads.json"
_KINDS = ("subscribe", "subscribePattern", "assign")

Reads = list[tuple[str, str]]  # The kind of a subscription, and a topic's name or a pattern.


def claim_checkpoint(writer: Any, given: str | None) -> None:
    """Before PySpark's stream writer starts: refuse another query's checkpoint, or take it."""
    location = given or _option(writer, "checkpointLocation")
    folder = local_path(location)
    reads = read_by(_source_options(writer)) if folder is not None else []
    if folder is None or not reads:
        return  # Nothing of ours is read, or the files are not this machine's.
    before = _left_in(folder)
    if before and is_other(before, reads):
        raise OptionError(
            f"The checkpoint {location} belongs to another query: that one reads "
            f"{_words(before)}, this one {_words(reads)}. Choose another checkpointLocation, or "
            "remove the directory if the other query is not to go on."
        )
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f".{_FILE}.{os.getpid()}"
    fresh.write_text(json.dumps(reads))
    fresh.replace(folder / _FILE)


def read_by(sources: Iterable[Mapping[str, str]]) -> Reads:
    """What sources with these options read, in a stable order."""
    found: set[tuple[str, str]] = set()
    for options in sources:
        known = {key.lower(): value for key, value in options.items()}
        for kind in _KINDS:
            text = known.get(kind.lower())
            if text is not None:
                found.update((kind, name) for name in _names(kind, text))
    return sorted(found)


def is_other(before: Reads, now: Reads) -> bool:
    """Whether nothing of what was read is read now; two patterns may always mean the same."""
    return not any(_overlap(one, other) for one in before for other in now)


def _overlap(one: tuple[str, str], other: tuple[str, str]) -> bool:
    patterns = [each[1] for each in (one, other) if each[0] == "subscribePattern"]
    topics = [each[1] for each in (one, other) if each[0] != "subscribePattern"]
    if len(topics) == 2:
        return topics[0] == topics[1]
    return not topics or _matches(patterns[0], topics[0])


def _matches(pattern: str, topic: str) -> bool:
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error:
        return True  # Java's own syntax: it cannot be told.


def _names(kind: str, text: str) -> list[str]:
    if kind == "subscribe":
        return [name.strip() for name in text.split(",") if name.strip()]
    if kind == "assign":
        try:
            return [str(name) for name in json.loads(text)]
        except ValueError:
            return []  # The source refuses it in its own words.
    return [text]


def _left_in(folder: Path) -> Reads:
    """What the last start has left; empty: nothing, or Spark has not begun there."""
    try:
        if not (folder / "metadata").is_file():
            return []
        return [(str(kind), str(name)) for kind, name in json.loads((folder / _FILE).read_text())]
    except (FileNotFoundError, ValueError, TypeError):
        return []


def _words(reads: Reads) -> str:
    return ", ".join(name for _, name in reads)


def _option(writer: Any, name: str) -> str | None:
    """An option of PySpark's writer, which keeps them in the JVM and shows them to nobody."""
    field = writer._jwrite.getClass().getDeclaredField("extraOptions")
    field.setAccessible(True)
    found = field.get(writer._jwrite).get(name)
    return str(found.get()) if found.isDefined() else None


def _source_options(writer: Any) -> list[Mapping[str, str]]:
    """The options of each of our sources that the query streams from."""
    leaves = writer._df._jdf.queryExecution().analyzed().collectLeaves()
    found: list[Mapping[str, str]] = []
    for at in range(leaves.size()):
        leaf = leaves.apply(at)
        is_stream = leaf.getClass().getSimpleName() == "StreamingRelationV2"
        if is_stream and str(leaf.sourceName()).startswith("penstock"):
            found.append(dict(leaf.extraOptions().asCaseSensitiveMap()))
    return found
