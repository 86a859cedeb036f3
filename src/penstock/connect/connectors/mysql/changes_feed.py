"""From events of the binary log to records, with the position behind each; it never waits.

The records of one row leave when the next row or event is known: if that ends the transaction,
their position is the one behind it.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from pymysqlreplication.event import (
    GtidEvent,
    MariadbGtidEvent,
    QueryEvent,
    RotateEvent,
    XidEvent,
)
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    RowsEvent,
    TableMapEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from penstock.connect.connectors.changes.drafts import ChangeDraft, DraftMaker, FoundChange
from penstock.connect.connectors.changes.settings import FailureMode
from penstock.connect.connectors.mysql.column_types import ColumnFacts
from penstock.connect.connectors.mysql.positions import BinlogPosition
from penstock.connect.connectors.mysql.settings import BinlogSettings
from penstock.connect.connectors.mysql.shapes import MyTable, facts_of_log, table_of
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.records import SourceRecord

log = logging.getLogger("penstock.connect.mysql")
Catalog = Callable[[str, str], Mapping[str, ColumnFacts]]
_SECOND = timedelta(seconds=1)
_EMPTY_SET = "empty set"
_TRUNCATE = re.compile(
    r"(?:/\*.*?\*/\s*)*TRUNCATE\s+(?:TABLE\s+)?(?:`?([^`.\s;]+)`?\s*\.\s*)?`?([^`.\s;]+)`?",
    re.IGNORECASE | re.DOTALL,
)
_INSIDE = ("SAVEPOINT", "RELEASE SAVEPOINT", "ROLLBACK TO")


class BinlogFeed:
    """One run through the log, from a position on."""

    def __init__(
        self, settings: BinlogSettings, catalog: Catalog, position: BinlogPosition
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._partition = settings.partition
        self._make = DraftMaker(
            skipped=settings.skipped, tombstones=settings.given["tombstones.on.delete"]
        )
        self._tables: dict[int, tuple[MyTable | None, Sequence[str]]] = {}
        self._shapes: dict[Any, MyTable] = {}  # By all that was told of a table.
        self._file, self._pos = position.file, position.pos  # Behind the last whole transaction.
        self._skip = (position.event, position.row)
        self._event = 0  # Events with rows of the open transaction.
        self._is_open = False
        self._gtid: str | None = None
        self._held: list[ChangeDraft] = []
        self._held_at = (0, 0)  # How much of the transaction is done with them.
        self._ts_s = 0

    @property
    def is_between(self) -> bool:
        """Whether no transaction is open, so that a heartbeat can have a position."""
        return not self._is_open

    @property
    def position(self) -> BinlogPosition:
        """Behind the last whole transaction."""
        return BinlogPosition(file=self._file, pos=self._pos)

    def take(self, event: Any, file: str, pos: int, now_ns: int) -> list[SourceRecord]:
        """The records that are ready after one more event, which ends at this place."""
        match event:
            case RowsEvent():
                return self._take_rows(event, file, now_ns)
            case TableMapEvent():
                self._tables[event.table_id] = (self._shape(event), _names(event))
            case MariadbGtidEvent() | GtidEvent():
                self._gtid, self._is_open = str(event.gtid), True
            case XidEvent():
                return self._end(file, pos)
            case QueryEvent():
                return self._take_query(event, file, pos, now_ns)
            case RotateEvent() if not self._is_open:
                self._file, self._pos = event.next_binlog, event.position
        return []

    def release(self) -> list[SourceRecord]:
        """What is held, because the next event will not be taken."""
        ready, self._held = self._placed(self._inside()), []
        return ready

    def _take_query(self, event: Any, file: str, pos: int, now_ns: int) -> list[SourceRecord]:
        query = event.query.strip()
        start = query[:20].upper()
        if start == "BEGIN" or start.startswith("XA START"):
            self._is_open = True
            return []
        if start.startswith(_INSIDE):
            return []
        self._event += 1
        found = _TRUNCATE.match(query)
        ready = [] if found is None else self._take_truncation(found, event, file, now_ns)
        return [*ready, *self._end(file, pos)]

    def _take_truncation(
        self, found: "re.Match[str]", event: Any, file: str, now_ns: int
    ) -> list[SourceRecord]:
        database = found[1] or _text(event.schema)
        if not self._settings.choice.has_table(database, found[2]) or self._is_done(0):
            return []
        known = [shape for shape in self._shapes.values() if (shape.database, shape.name) ==
                 (database, found[2])]  # fmt: skip
        columns = list(self._catalog(database, found[2]).values())
        if not known and not columns:
            return []  # The table is gone by now.
        shape = known[-1] if known else table_of(database, found[2], columns, (), self._settings)
        self._ts_s = event.timestamp
        drafts = self._make.truncated(self._found(shape, event, file, 0, now_ns))
        return self._hold(drafts, 0)

    def _take_rows(self, event: Any, file: str, now_ns: int) -> list[SourceRecord]:
        self._event += 1
        self._is_open, self._ts_s = True, event.timestamp
        if event.table_id not in self._tables:
            raise ConnectError(f"A change of table {event.table_id} came before its shape.")
        table, names = self._tables[event.table_id]
        if table is None or self._skip[0] >= self._event:
            return []
        ready: list[SourceRecord] = []
        for number, row in enumerate(event.rows):
            if not self._is_done(number):
                ready += self._hold(self._safely(table, names, event, file, number, row, now_ns),
                                    number + 1)  # fmt: skip
        return ready

    def _is_done(self, row: int) -> bool:
        events, rows = self._skip
        return self._event <= events or (self._event == events + 1 and row < rows)

    def _safely(
        self,
        table: MyTable,
        names: Sequence[str],
        event: Any,
        file: str,
        number: int,
        row: Mapping[str, Any],
        now_ns: int,
    ) -> list[ChangeDraft]:
        """Drafts of a row; none of one that cannot be read, where the settings say so."""
        try:
            found = self._found(table, event, file, number, now_ns)
            return self._drafts(table, names, event, row, found)
        except DataError as error:
            self._tell_poison(error, file, event.packet.log_pos, number)
            return []

    def _drafts(
        self,
        table: MyTable,
        names: Sequence[str],
        event: Any,
        row: Mapping[str, Any],
        found: FoundChange,
    ) -> list[ChangeDraft]:
        match event:
            case WriteRowsEvent():
                return self._make.created(found, table.row(_sent(names, row, "")))
            case DeleteRowsEvent():
                return self._make.deleted(found, table.row(_sent(names, row, "")))
            case UpdateRowsEvent():
                before = table.row(_sent(names, row, "before_"))
                after = table.row(_sent(names, row, "after_"))
                if table.captured.key(before) != table.captured.key(after):
                    return self._make.moved(found, before, after)
                return self._make.updated(found, before, after)
        raise ConnectError(
            f"{type(event).__name__} is not read here; binlog_row_value_options must be empty."
        )

    def _found(self, table: MyTable, event: Any, file: str, row: int, now_ns: int) -> FoundChange:
        source = table.source(
            self._settings,
            us=event.timestamp * 1_000_000,
            snapshot="false",
            server_id=event.packet.server_id,
            gtid=self._gtid,
            file=file,
            pos=event.packet.log_pos - event.packet.event_size,
            row=row,
        )
        return FoundChange(table=table.captured, source=source, now_ns=now_ns)

    def _hold(self, made: list[ChangeDraft], rows: int) -> list[SourceRecord]:
        """Give out those of the last row, and keep these instead."""
        if not made:
            return []
        ready = self._placed(self._inside())
        self._held, self._held_at = made, (self._event - 1, rows)
        return ready

    def _inside(self) -> BinlogPosition:
        event, row = self._held_at
        return BinlogPosition(file=self._file, pos=self._pos, event=event, row=row)

    def _placed(self, position: BinlogPosition) -> list[SourceRecord]:
        if not self._held:
            return []
        more = {"ts_sec": self._ts_s} | ({"gtid": self._gtid} if self._gtid else {})
        offset = position.offset(**more)
        return [one.placed(self._partition, offset) for one in self._held]

    def _end(self, file: str, pos: int) -> list[SourceRecord]:
        self._file, self._pos = file, pos
        ready = self._placed(self.position)
        self._held, self._held_at, self._skip = [], (0, 0), (0, 0)
        self._event, self._is_open, self._gtid = 0, False, None
        return ready

    def _shape(self, event: Any) -> MyTable | None:
        """The shape of a table that is captured; it is made once for each change of it."""
        database, name = event.schema, event.table
        if not self._settings.choice.has_table(database, name):
            return None
        if any(one.name is None for one in event.columns):
            raise ConnectError(
                f"The binary log has no names of columns for {database}.{name}: the server's"
                " binlog_row_metadata must be FULL, and must have been when this was written."
            )
        facts = facts_of_log(event.columns, event.null_bitmask, self._known(event))
        prefixed = event.optional_metadata.primary_keys_with_prefix
        key = [one.name for at, one in enumerate(event.columns) if one.is_primary or at in prefixed]
        told = (database, name, tuple(facts), tuple(key))
        if told not in self._shapes:
            self._shapes[told] = table_of(database, name, facts, key, self._settings)
        return self._shapes[told]

    def _known(self, event: Any) -> Mapping[str, ColumnFacts]:
        """The catalog, where the log has bytes that may be more."""
        has_bytes = any(
            one.type == 254 and one.character_set_name == "binary" for one in event.columns
        )
        return self._catalog(event.schema, event.table) if has_bytes else {}

    def _tell_poison(self, error: DataError, file: str, pos: int, row: int) -> None:
        sentence = f"Row {row} of the event before {file}:{pos} cannot be made a record: {error}"
        if self._settings.failures is FailureMode.FAIL:
            raise ConnectError(
                f"{sentence} (event.processing.failure.handling.mode=skip leaves it out)"
            ) from error
        if self._settings.failures is FailureMode.WARN:
            log.warning("%s; it is left out", sentence)


def _names(event: Any) -> list[str]:
    return [one.name for one in event.columns]


def _sent(names: Sequence[str], row: Mapping[str, Any], which: str) -> list[Any]:
    """Values in the order of the columns, with what the reader gets wrong put right."""
    values, nulls = row[f"{which}values"], row[f"{which}none_sources"]
    return ["" if nulls.get(name) == _EMPTY_SET else _mended(values[name]) for name in names]


def _mended(value: Any) -> Any:
    """A TIME below zero comes with the rest of its fraction."""
    if isinstance(value, timedelta) and value.days < 0 and value.microseconds:
        whole, rest = divmod(-value, _SECOND)
        return -(whole * _SECOND + (_SECOND - rest))
    return value


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
