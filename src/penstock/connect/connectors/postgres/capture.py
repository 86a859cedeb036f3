"""One connected run of a capture: it decides between snapshot and stream, and reads both."""

import logging
import threading
from contextlib import suppress

import psycopg
import psycopg2
import psycopg2.errors

from penstock.connect.connectors.changes.settings import SnapshotMode
from penstock.connect.connectors.postgres.changes_feed import ChangesFeed
from penstock.connect.connectors.postgres.pgoutput import RelationTold, lsn_text
from penstock.connect.connectors.postgres.positions import CapturePosition
from penstock.connect.connectors.postgres.server import PgServer, SlotState
from penstock.connect.connectors.postgres.settings import CaptureSettings
from penstock.connect.connectors.postgres.shapes import PgTable, table_of
from penstock.connect.connectors.postgres.snapshot import SnapshotReader
from penstock.connect.connectors.postgres.stream import ChangeStream
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.records import SourceRecord

log = logging.getLogger("penstock.connect.postgres")
_WAIT_S = 0.1


class PgCapture:
    """From a position on (None: from the beginning), until an error or `close`."""

    def __init__(self, settings: CaptureSettings, position: CapturePosition | None) -> None:
        self._settings = settings
        self._server = PgServer(settings)
        self._snapshot: SnapshotReader | None = None
        self._stream: ChangeStream | None = None
        self._feed: ChangesFeed | None = None
        self._horizon = 0  # Ids below it must have ended before a snapshot begins.
        try:
            self._position = self._prepared(position)
        except BaseException:
            self._server.close()
            raise

    def take(self, stopping: threading.Event) -> list[SourceRecord]:
        """What is next, after a wait where nothing is."""
        wait_s = self._settings.given["poll.interval.ms"] / 1000
        if self._position.is_snapshot:
            records = self._snapshot_records(stopping)
            if records or self._position.is_snapshot:
                return records
        if self._settings.snapshot is SnapshotMode.INITIAL_ONLY:
            stopping.wait(wait_s)
            return []
        count = self._settings.given["max.batch.size"]
        return self._streaming().take(count, wait_s, stopping)

    def idle_position(self) -> CapturePosition | None:
        """Where a heartbeat stands; None: not in the stream, or inside of a transaction."""
        if self._stream is None or self._feed is None or not self._feed.is_between:
            return None
        return self._feed.idle(self._stream.seen_lsn)

    def confirm(self, lsn: int) -> None:
        """Everything up to here is in Kafka."""
        if self._stream is not None:
            self._stream.confirm(lsn)

    def close(self) -> None:
        """Hang up everywhere."""
        with suppress(psycopg.Error):
            for one in (self._snapshot, self._stream, self._server):
                if one is not None:
                    one.close()

    # Where to begin ------------------------------------------------------------------------------

    def _prepared(self, position: CapturePosition | None) -> CapturePosition:
        settings, slot = self._settings, None
        if settings.snapshot is not SnapshotMode.INITIAL_ONLY:
            slot = self._server.slot()
            trouble = _trouble(settings, slot, position)
            if trouble is not None and settings.snapshot is SnapshotMode.WHEN_NEEDED:
                log.warning("%s A new snapshot begins.", trouble)
                position = None
                if slot is not None and slot.is_lost:
                    self._server.drop_slot()
                    slot = None
            elif trouble is not None:
                raise ConnectError(trouble)
            self._server.ensure_publication(self._server.tables())
        return position if position is not None else self._first(slot)

    def _first(self, slot: SlotState | None) -> CapturePosition:
        """The position of a capture that has none."""
        with_rows = self._settings.snapshot not in (SnapshotMode.NEVER, SnapshotMode.NO_DATA)
        if self._settings.snapshot is SnapshotMode.INITIAL_ONLY:
            return CapturePosition(lsn_commit=self._server.wal_lsn(), is_snapshot=True)
        lsn = self._server.create_slot() if slot is None else slot.confirmed_lsn
        # A transaction that was written before the slot begins, and is not visible yet, would be
        # in neither: the snapshot waits for it.
        self._horizon = self._number("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        return CapturePosition(lsn_commit=lsn, is_snapshot=with_rows)

    def _number(self, question: str) -> int:
        return int(self._server.ask(question)[0][0])

    # Snapshot and stream -------------------------------------------------------------------------

    def _snapshot_records(self, stopping: threading.Event) -> list[SourceRecord]:
        """Rows; when there are no more, the position is that of the stream."""
        if self._snapshot is None:
            lowest = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"
            if self._horizon and self._number(lowest) < self._horizon:
                stopping.wait(_WAIT_S)
                return []
            self._snapshot = SnapshotReader(self._settings, self._server, self._position)
        count = self._settings.given["max.batch.size"]
        records = self._snapshot.take(count)
        if len(records) < count:  # Locks of tables must not wait for the next poll.
            self._position = self._snapshot.position
            self._snapshot.close()
            self._snapshot = None
        return records

    def _streaming(self) -> ChangeStream:
        if self._stream is None:
            self._feed = ChangesFeed(self._settings, self._shape_of, self._position)
            self._stream = ChangeStream(self._settings, self._feed, self._position.lsn_commit)
        return self._stream

    def _shape_of(self, relation: RelationTold) -> PgTable | None:
        """A table's shape, with what only the catalog knows; None: it is not captured."""
        if not self._settings.choice.has_table(relation.schema, relation.table):
            return None
        catalog = self._server.table(relation.schema, relation.table)
        return table_of(relation, catalog, self._server.type, self._settings)


def _trouble(
    settings: CaptureSettings, slot: SlotState | None, position: CapturePosition | None
) -> str | None:
    """Why the slot cannot go on where the offsets are; None: it can."""
    name = settings.slot
    if slot is None:
        if position is None:
            return None
        return (
            f"The replication slot {name} is gone, and with it changes since"
            f" {lsn_text(position.lsn_commit)}. Stop the connector and delete its offsets for a"
            " new snapshot, or set snapshot.mode=when_needed."
        )
    if slot.plugin != "pgoutput" or slot.database != settings.given["database.dbname"]:
        return (
            f"The replication slot {name} is one of the plug-in {slot.plugin} in the database"
            f" {slot.database}. Set another slot.name."
        )
    if slot.is_lost:
        return (
            f"The server has removed changes that the replication slot {name} still had to give"
            " (max_slot_wal_keep_size). Drop it, stop the connector and delete its offsets for a"
            " new snapshot, or set snapshot.mode=when_needed."
        )
    if position is not None and slot.confirmed_lsn > position.lsn_commit:
        return (
            f"The replication slot {name} stands at {lsn_text(slot.confirmed_lsn)}, behind"
            f" {lsn_text(position.lsn_commit)} where the offsets are: it was made anew, or another"
            " reader moved it. The changes between are lost. Stop the connector and delete its"
            " offsets for a new snapshot, or set snapshot.mode=when_needed."
        )
    return None


def is_busy_slot(error: Exception) -> bool:
    """Whether another process reads from the slot now."""
    return isinstance(error, psycopg2.errors.ObjectInUse)


def is_lost(error: Exception) -> bool:
    """Whether the connection failed, so that another may succeed."""
    kinds = (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        psycopg2.OperationalError,
        psycopg2.InterfaceError,
    )
    return isinstance(error, kinds) or type(error) is psycopg2.DatabaseError


def server_errors(settings: CaptureSettings) -> list[tuple[str, str]]:
    """What a server says that is asked whether it can be captured."""
    try:
        server = PgServer(settings)
    except psycopg.Error as error:
        return [("database.hostname", f"Unable to connect: {error}".strip())]
    try:
        return _unfit(server, settings)
    except psycopg.Error as error:
        return [("database.hostname", str(error))]
    finally:
        server.close()


def _unfit(server: PgServer, settings: CaptureSettings) -> list[tuple[str, str]]:
    found = []
    if settings.snapshot is not SnapshotMode.INITIAL_ONLY:
        level = server.ask("SELECT current_setting('wal_level')")[0][0]
        if level != "logical":
            found.append(
                ("database.hostname", f"The server has wal_level={level}; it needs logical.")
            )
        may = "SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user"
        if not server.ask(may)[0][0]:
            found.append(("database.user", "The user needs the attribute REPLICATION."))
    if not server.tables():
        found.append(("table.include.list", "No table of the database is chosen."))
    return found
