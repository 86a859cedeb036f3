"""The replication protocol: messages of a slot as they come, and feedback of what is safe."""

import threading
import time
from contextlib import suppress
from typing import Any

import psycopg2
from psycopg2.extras import LogicalReplicationConnection

from penstock.connect.connectors.changes.arrivals import has_arrived
from penstock.connect.connectors.postgres.changes_feed import ChangesFeed
from penstock.connect.connectors.postgres.pgoutput import lsn_text
from penstock.connect.connectors.postgres.settings import CaptureSettings
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.records import SourceRecord

_STATUS_S = 10.0  # How often the server is told that we live.
_SLICE_S = 0.1  # How soon a stop is noticed.


class ChangeStream:
    """One connection that streams; it ends with its first error."""

    def __init__(self, settings: CaptureSettings, feed: ChangesFeed, lsn: int) -> None:
        self._feed = feed
        self._failure: Exception | None = None
        self._connection: Any = psycopg2.connect(
            **settings.connection(), connection_factory=LogicalReplicationConnection
        )
        self._cursor: Any = self._connection.cursor()
        options = {
            "proto_version": "1",
            "publication_names": '"{}"'.format(settings.publication.replace('"', '""')),
        }
        self._cursor.start_replication(
            slot_name=settings.slot,
            start_lsn=lsn_text(lsn),
            options=options,
            decode=False,
            status_interval=_STATUS_S,
        )

    @property
    def seen_lsn(self) -> int:
        """Up to where the server has sent all that there is."""
        return int(self._cursor.wal_end)

    def take(self, count: int, wait_s: float, stopping: threading.Event) -> list[SourceRecord]:
        """About so many records; fewer when no more came in time.

        What fails behind records that are ready is raised by the next call.
        """
        if self._failure is not None:
            raise self._failure
        ready: list[SourceRecord] = []
        try:
            self._read(ready, count, wait_s, stopping)
        except (psycopg2.Error, ConnectError) as error:
            ready += self._feed.release()
            if not ready:
                raise
            self._failure = error
        return ready

    def _read(
        self, ready: list[SourceRecord], count: int, wait_s: float, stopping: threading.Event
    ) -> None:
        give_up_s = time.monotonic() + wait_s
        while len(ready) < count:
            message = self._cursor.read_message()
            if message is not None:
                ready += self._feed.take(message.payload, time.time_ns())
            elif ready or stopping.is_set() or time.monotonic() >= give_up_s:
                return
            else:
                left_s = max(0.0, give_up_s - time.monotonic())
                has_arrived(self._cursor, min(left_s, _SLICE_S))

    def confirm(self, lsn: int) -> None:
        """Everything up to here is safe; the server may forget it."""
        with suppress(psycopg2.Error):  # The next `take` tells that the connection is lost.
            self._cursor.send_feedback(flush_lsn=lsn, write_lsn=lsn, reply=False, force=True)

    def close(self) -> None:
        """Hang up; the slot stays."""
        with suppress(psycopg2.Error):
            self._connection.close()
