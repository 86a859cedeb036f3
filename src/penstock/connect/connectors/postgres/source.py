"""The connector and its task: a snapshot of tables, then their changes, from where it was left.

The server is told that changes are safe only after the worker has told that the records with their
offsets are in Kafka, so whatever dies, the slot still has what is missing.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.connect.connectors.changes.capturing import (
    CaptureConnector,
    CaptureTask,
    Patience,
)
from penstock.connect.connectors.postgres.positions import CapturePosition
from penstock.connect.connectors.postgres.settings import RULES, CaptureSettings
from penstock.connect.plugins.contract import Config
from penstock.connect.records import SourceRecord

if TYPE_CHECKING:
    from penstock.connect.connectors.postgres.capture import PgCapture

LIBRARIES = {"psycopg": "psycopg", "psycopg2": "psycopg2"}


class PostgresConnectorTask(CaptureTask[CaptureSettings, CapturePosition, "PgCapture"]):
    """Reads one slot."""

    libraries = LIBRARIES

    def __init__(self) -> None:
        super().__init__()
        self._safe_lsn = 0

    def commit_record(
        self, record: SourceRecord, *, partition: int | None, offset: int | None
    ) -> None:
        if record.source_offset is not None:
            self._safe_lsn = record.source_offset["lsn_commit"]

    def commit(self) -> None:
        if self._capture is not None and self._safe_lsn:
            self._capture.confirm(self._safe_lsn)

    @classmethod
    def settings_of(cls, config: Config) -> CaptureSettings:
        return CaptureSettings.of(config)

    @classmethod
    def position_of(cls, offset: Mapping[str, Any]) -> CapturePosition:
        return CapturePosition.of_offset(offset)

    @classmethod
    def opened(cls, settings: CaptureSettings, position: CapturePosition | None) -> "PgCapture":
        from penstock.connect.connectors.postgres.capture import PgCapture

        return PgCapture(settings, position)

    @classmethod
    def patience_with(cls, error: Exception, settings: CaptureSettings) -> Patience | None:
        from penstock.connect.connectors.postgres.capture import is_busy_slot, is_lost

        if is_busy_slot(error):
            given = settings.given
            return Patience(given["slot.max.retries"], given["slot.retry.delay.ms"])
        return Patience.with_lost_servers(settings) if is_lost(error) else None

    @classmethod
    def server_errors(cls, settings: CaptureSettings) -> list[tuple[str, str]]:
        from penstock.connect.connectors.postgres.capture import server_errors

        return server_errors(settings)

    @staticmethod
    def time_told(now_ms: int) -> Mapping[str, int]:
        return {"ts_usec": now_ms * 1000}


class PostgresConnector(CaptureConnector):
    """Captures PostgreSQL."""

    libraries = LIBRARIES
    rules = RULES
    task = PostgresConnectorTask
