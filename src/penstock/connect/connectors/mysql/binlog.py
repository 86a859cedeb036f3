"""The binary log as it comes: one event at a time, without a wait that a stop could not end."""

import ssl
from contextlib import suppress
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader

from penstock.connect.connectors.changes.arrivals import has_arrived
from penstock.connect.connectors.mysql.positions import BinlogPosition
from penstock.connect.connectors.mysql.settings import BinlogSettings

_HEARTBEAT_S = 10.0  # How often a server that has nothing to send tells that it lives.
_SILENCE_S = 60  # After which it is taken for lost.


class BinlogStream:
    """One connection that streams from a place on; it ends with its first error."""

    def __init__(self, settings: BinlogSettings, position: BinlogPosition) -> None:
        self._opened = 0
        connection = {**settings.connection(), "read_timeout": _SILENCE_S}
        self._reader: Any = BinLogStreamReader(
            connection,
            server_id=settings.given["database.server.id"],
            blocking=True,
            resume_stream=True,
            log_file=position.file,
            log_pos=position.pos,
            slave_heartbeat=_HEARTBEAT_S,
            # All events are let through: what the reader filters, it waits behind.
            filter_non_implemented_events=False,
            enable_logging=False,
            pymysql_wrapper=self._connect,
        )

    @property
    def file(self) -> str:
        """The file of the last event."""
        return str(self._reader.log_file)

    @property
    def pos(self) -> int:
        """Behind the last event."""
        return int(self._reader.log_pos)

    def next(self, wait_s: float) -> Any:
        """The next event; None: none came in time."""
        if self._opened and not self._has_more() and not self._wait(wait_s):
            return None
        return self._reader.fetchone()

    def close(self) -> None:
        """Hang up."""
        with suppress(pymysql.Error, OSError):
            self._reader.close()

    def _connect(self, **settings: Any) -> Any:
        """The reader connects anew by itself where a connection is lost; that is the task's."""
        if settings.get("db") != "information_schema":
            self._opened += 1
            if self._opened > 1:
                raise pymysql.err.OperationalError(2013, "The connection to the server is lost.")
        return pymysql.connect(**settings)

    def _has_more(self) -> bool:
        """Bytes may wait in PyMySQL's buffer, where a wait does not see them."""
        connection = self._reader._stream_connection
        connection._sock.settimeout(0)
        try:
            return bool(connection._rfile.peek(1))
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        finally:
            connection._sock.settimeout(_SILENCE_S)

    def _wait(self, wait_s: float) -> bool:
        return has_arrived(self._reader._stream_connection._sock, wait_s)
