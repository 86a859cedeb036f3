"""Which topics a query has read, by their ids, kept beside its checkpoint from run to run.

A topic that was deleted and created anew has the same name and other records at the same offsets.
While a query runs it sees the id change; what happened while it was down it can only know from what
it left behind. Spark's offsets have no room for that, and a group's commits go with the topic. So
the ids are files in the checkpoint's directory, a file per topic, if the reader is told where that
is (`checkpointLocation`; lake tables and pipelines tell it).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from penstock.client.wire.raw_fetch import NO_TOPIC_ID

_FOLDER = "topic-ids"


class TopicIds:
    """The ids that were there when the last batch was done."""

    def __init__(self, checkpoint: str | None) -> None:
        local = local_path(checkpoint)
        self._folder = local / _FOLDER if local is not None else None
        self._noted: dict[str, bytes] = {}

    def changed(self, ids: Mapping[str, bytes]) -> set[str]:
        """The topics that have another id than at the last batch."""
        return {topic for topic, topic_id in ids.items() if self._is_other(topic, topic_id)}

    def note(self, ids: Mapping[str, bytes]) -> None:
        """Keep the ids of the topics that a finished batch has read."""
        for topic, topic_id in ids.items():
            if topic_id != NO_TOPIC_ID and self._known(topic) != topic_id:
                self._noted[topic] = topic_id
                self._write(topic, topic_id)

    def forget(self) -> None:
        """A query that begins anew has read nothing."""
        self._noted.clear()
        if self._folder is not None and self._folder.is_dir():
            for file in self._folder.iterdir():
                file.unlink(missing_ok=True)

    def _is_other(self, topic: str, topic_id: bytes) -> bool:
        before = self._known(topic)
        return NO_TOPIC_ID not in (before, topic_id) and before != topic_id

    def _known(self, topic: str) -> bytes:
        if topic not in self._noted:
            self._noted[topic] = self._read(topic)
        return self._noted[topic]

    def _read(self, topic: str) -> bytes:
        if self._folder is None:
            return NO_TOPIC_ID
        try:
            return bytes.fromhex((self._folder / _file_name(topic)).read_text())
        except (FileNotFoundError, ValueError):
            return NO_TOPIC_ID

    def _write(self, topic: str, topic_id: bytes) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / _file_name(topic)
        fresh = file.with_name(f".{file.name}.{os.getpid()}")  # Two inputs may read one topic.
        fresh.write_text(topic_id.hex())
        fresh.replace(file)


def _file_name(topic: str) -> str:
    return f"topic-{quote(topic, safe='')}"


def local_path(checkpoint: str | None) -> Path | None:
    """The directory; None: not told, or on another kind of file system than this machine's own."""
    if checkpoint is None:
        return None
    path = checkpoint.removeprefix("file://").removeprefix("file:")
    return None if "://" in path else Path(path)
