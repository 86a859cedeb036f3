"""The connector and its task: a snapshot of tables, then their changes, from where it was left.

The position is in Kafka alone, in the transaction of the records.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.connect.connectors.changes.capturing import (
    CaptureConnector,
    CaptureTask,
    Patience,
)
from penstock.connect.connectors.mysql.positions import BinlogPosition
from penstock.connect.connectors.mysql.settings import RULES, BinlogSettings
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.contract import Config

if TYPE_CHECKING:
    from penstock.connect.connectors.mysql.capture import MyCapture

LIBRARIES = {"pymysql": "pymysql", "pymysqlreplication": "mysql-replication"}


class MySqlConnectorTask(CaptureTask[BinlogSettings, BinlogPosition, "MyCapture"]):
    """Reads the binary log."""

    libraries = LIBRARIES
    product: ClassVar[str] = "mysql"

    @classmethod
    def settings_of(cls, config: Config) -> BinlogSettings:
        return BinlogSettings.of(config, cls.product)

    @classmethod
    def position_of(cls, offset: Mapping[str, Any]) -> BinlogPosition:
        return BinlogPosition.of_offset(offset)

    @classmethod
    def opened(cls, settings: BinlogSettings, position: BinlogPosition | None) -> "MyCapture":
        from penstock.connect.connectors.mysql.capture import MyCapture

        return MyCapture(settings, position)

    @classmethod
    def patience_with(cls, error: Exception, settings: BinlogSettings) -> Patience | None:
        from penstock.connect.connectors.mysql.capture import is_log_gone, is_lost

        if is_log_gone(error):
            raise ConnectError(
                f"The server cannot go on where the offsets are: {error}. Stop the connector and"
                " delete its offsets for a new snapshot."
            ) from error
        return Patience.with_lost_servers(settings) if is_lost(error) else None

    @classmethod
    def server_errors(cls, settings: BinlogSettings) -> list[tuple[str, str]]:
        from penstock.connect.connectors.mysql.capture import server_errors

        return server_errors(settings)

    @staticmethod
    def time_told(now_ms: int) -> Mapping[str, int]:
        return {"ts_sec": now_ms // 1000}


class MariaDbConnectorTask(MySqlConnectorTask):
    """The same, under MariaDB's name."""

    product = "mariadb"


class MySqlConnector(CaptureConnector):
    """Captures MySQL."""

    libraries = LIBRARIES
    rules = RULES
    task = MySqlConnectorTask


class MariaDbConnector(MySqlConnector):
    """The same, under MariaDB's name."""

    task = MariaDbConnectorTask
