"""One connected run of a capture: it decides between snapshot and stream, and reads both."""

import logging
import threading
import time
from contextlib import suppress

import pymysql

from penstock.connect.connectors.changes.settings import SnapshotMode
from penstock.connect.connectors.mysql.binlog import BinlogStream
from penstock.connect.connectors.mysql.changes_feed import BinlogFeed
from penstock.connect.connectors.mysql.column_types import ColumnFacts
from penstock.connect.connectors.mysql.positions import BinlogPosition
from penstock.connect.connectors.mysql.server import MyServer
from penstock.connect.connectors.mysql.settings import BinlogSettings
from penstock.connect.connectors.mysql.snapshot import MySnapshotReader
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.records import SourceRecord

log = logging.getLogger("penstock.connect.mysql")
_SLICE_S = 0.1  # How soon a stop is noticed.
# What a server says that goes away, is not there, or has no room for us now.
_LOST = frozenset({1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1927, 2002, 2003, 2006,
                   2013, 2055})  # fmt: skip
_LOG_GONE = 1236


class MyCapture:
    """From a position on (None: from the beginning), until an error or `close`."""

    def __init__(self, settings: BinlogSettings, position: BinlogPosition | None) -> None:
        self._settings = settings
        self._server = MyServer(settings)
        self._snapshot: MySnapshotReader | None = None
        self._stream: BinlogStream | None = None
        self._feed: BinlogFeed | None = None
        self._failure: Exception | None = None
        try:
            self._position = self._prepared(position)
        except BaseException:
            self._server.close()
            raise

    def take(self, stopping: threading.Event) -> list[SourceRecord]:
        """What is next, after a wait where nothing is."""
        wait_s = self._settings.given["poll.interval.ms"] / 1000
        if self._position is None:
            records = self._snapshot_records()
            if records or self._position is None:
                return records
        if self._settings.snapshot is SnapshotMode.INITIAL_ONLY:
            stopping.wait(wait_s)
            return []
        return self._changes(wait_s, stopping)

    def idle_position(self) -> BinlogPosition | None:
        """Where a heartbeat stands; None: not in the stream, or inside of a transaction."""
        if self._feed is None or not self._feed.is_between:
            return None
        return self._feed.position

    def close(self) -> None:
        """Hang up everywhere."""
        with suppress(pymysql.Error, OSError):
            for one in (self._snapshot, self._stream, self._server):
                if one is not None:
                    one.close()

    # Where to begin ------------------------------------------------------------------------------

    def _prepared(self, position: BinlogPosition | None) -> BinlogPosition | None:
        """Where the stream begins; None: a snapshot comes first."""
        mode, troubles = self._settings.snapshot, self._server.troubles()
        if troubles and mode is not SnapshotMode.INITIAL_ONLY:
            raise ConnectError(" ".join(troubles))
        if position is not None and position.is_snapshot:
            return None
        if position is not None and not self._server.has_log(position.file):
            sentence = (
                f"The server has no binary log {position.file} any more, and with it changes are"
                " gone. Stop the connector and delete its offsets for a new snapshot, or set"
                " snapshot.mode=when_needed."
            )
            if mode is not SnapshotMode.WHEN_NEEDED:
                raise ConnectError(sentence)
            log.warning("%s A new snapshot begins.", sentence)
            return None
        if position is None and mode in (SnapshotMode.NEVER, SnapshotMode.NO_DATA):
            return self._server.end()
        return position

    # Snapshot and stream -------------------------------------------------------------------------

    def _snapshot_records(self) -> list[SourceRecord]:
        """Rows; when there are no more, the position is that of the stream."""
        if self._snapshot is None:
            self._snapshot = MySnapshotReader(self._settings, self._server)
        count = self._settings.given["max.batch.size"]
        records = self._snapshot.take(count)
        if len(records) < count:
            self._position = self._snapshot.position
            self._snapshot.close()
            self._snapshot = None
        return records

    def _changes(self, wait_s: float, stopping: threading.Event) -> list[SourceRecord]:
        """About as many as one poll may bring; what fails behind them is raised by the next."""
        if self._failure is not None:
            raise self._failure
        stream, feed = self._streaming()
        ready: list[SourceRecord] = []
        try:
            self._read(stream, feed, ready, wait_s, stopping)
        except (pymysql.Error, OSError, ConnectError) as error:
            ready += feed.release()
            if not ready:
                raise
            self._failure = error
        return ready

    def _read(
        self,
        stream: BinlogStream,
        feed: BinlogFeed,
        ready: list[SourceRecord],
        wait_s: float,
        stopping: threading.Event,
    ) -> None:
        give_up_s, count = time.monotonic() + wait_s, self._settings.given["max.batch.size"]
        while len(ready) < count:
            left_s = max(0.0, give_up_s - time.monotonic())
            event = stream.next(0.0 if ready else min(left_s, _SLICE_S))
            if event is not None:
                ready += feed.take(event, stream.file, stream.pos, time.time_ns())
            elif ready or stopping.is_set() or not left_s:
                return

    def _streaming(self) -> tuple[BinlogStream, BinlogFeed]:
        if self._stream is None or self._feed is None:
            assert self._position is not None
            self._feed = BinlogFeed(self._settings, self._catalog, self._position)
            self._stream = BinlogStream(self._settings, self._position)
        return self._stream, self._feed

    def _catalog(self, database: str, table: str) -> dict[str, ColumnFacts]:
        return {one.name: one for one in self._server.columns(database, table)}


def server_errors(settings: BinlogSettings) -> list[tuple[str, str]]:
    """What a server says that is asked whether it can be captured."""
    try:
        server = MyServer(settings)
    except (pymysql.Error, OSError) as error:
        return [("database.hostname", f"The server cannot be reached: {error}")]
    try:
        return [("database.hostname", sentence) for sentence in server.troubles()]
    finally:
        server.close()


def is_lost(error: Exception) -> bool:
    """Whether the server may be back later."""
    if isinstance(error, pymysql.err.InterfaceError | OSError):
        return True
    return isinstance(error, pymysql.err.OperationalError) and error.args[0] in _LOST


def is_log_gone(error: Exception) -> bool:
    """Whether the server cannot send the log from where it was asked."""
    return isinstance(error, pymysql.Error) and error.args[:1] == (_LOG_GONE,)
