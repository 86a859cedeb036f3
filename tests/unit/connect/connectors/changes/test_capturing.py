"""A task goes on with a server that comes back, and gives up with one that does not."""

import threading
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from penstock.connect.connectors.changes.capturing import (
    CaptureConnector,
    CaptureTask,
    Patience,
)
from penstock.connect.connectors.mysql.positions import BinlogPosition
from penstock.connect.connectors.mysql.settings import RULES, BinlogSettings
from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.plugins.contract import Config
from penstock.connect.records import SourceRecord
from penstock.connect.testing import SourceRun

CONFIG = {
    "database.hostname": "db",
    "database.user": "u",
    "database.server.id": "7",
    "topic.prefix": "p",
    "errors.max.retries": "2",
    "retriable.restart.connector.wait.ms": "0",
}


class Server:
    """What it does when it is asked next: a number of rows, or an error; at last, none."""

    def __init__(self, *acts: int | Exception) -> None:
        self.acts = list(acts)
        self.opened_at: list[BinlogPosition | None] = []
        self.connections = 0


class ServerCapture:
    """A connection to it."""

    def __init__(self, server: Server, position: BinlogPosition | None) -> None:
        self.server = server
        self.pos = position.pos if position else 0
        server.opened_at.append(position)
        server.connections += 1

    def take(self, stopping: threading.Event) -> list[SourceRecord]:
        act = self.server.acts.pop(0) if self.server.acts else 0
        if isinstance(act, Exception):
            raise act
        first, self.pos = self.pos, self.pos + act
        return [
            SourceRecord(
                source_partition={"server": "p"},
                source_offset={"file": "log", "pos": pos + 1},
                topic="t",
                value=str(pos),
            )
            for pos in range(first, self.pos)
        ]

    def idle_position(self) -> BinlogPosition | None:
        return BinlogPosition(file="log", pos=self.pos)

    def close(self) -> None:
        self.server.connections -= 1


class ServerTask(CaptureTask[BinlogSettings, BinlogPosition, ServerCapture]):
    """Captures it."""

    libraries: ClassVar[Mapping[str, str]] = {}
    server: ClassVar[Server]

    @classmethod
    def settings_of(cls, config: Config) -> BinlogSettings:
        return BinlogSettings.of(config, "mysql")

    @classmethod
    def position_of(cls, offset: Mapping[str, Any]) -> BinlogPosition:
        return BinlogPosition.of_offset(offset)

    @classmethod
    def opened(cls, settings: BinlogSettings, position: BinlogPosition | None) -> ServerCapture:
        return ServerCapture(cls.server, position)

    @classmethod
    def patience_with(cls, error: Exception, settings: BinlogSettings) -> Patience | None:
        return Patience.with_lost_servers(settings) if isinstance(error, OSError) else None

    @classmethod
    def server_errors(cls, settings: BinlogSettings) -> list[tuple[str, str]]:
        return []

    @staticmethod
    def time_told(now_ms: int) -> Mapping[str, int]:
        return {"ts_sec": now_ms // 1000}


class ServerConnector(CaptureConnector):
    """Its connector."""

    rules = RULES
    task = ServerTask


def captured(*acts: int | Exception, **settings: str) -> SourceRun:
    """The capture of a server that acts like this."""
    ServerTask.server = Server(*acts)
    return SourceRun(ServerConnector, CONFIG | settings)


def test_a_server_that_comes_back_is_gone_on_with_behind_the_last_record() -> None:
    with captured(3, ConnectionError("away"), ConnectionError("away"), 2) as run:
        run.poll()
        for _ in range(2):
            with pytest.raises(RetriableConnectError, match="away"):
                run.task.poll()
        run.poll()
        run.commit()

        assert run.values("t") == ["0", "1", "2", "3", "4"]
        places = [place and place.pos for place in ServerTask.server.opened_at]
        assert places == [None, 3, 3]
        assert ServerTask.server.connections == 1
    assert ServerTask.server.connections == 0


def test_a_server_that_stays_away_fails_the_task() -> None:
    lost = ConnectionError("away")
    with captured(lost, 1, lost, lost, lost) as run:
        with pytest.raises(RetriableConnectError):
            run.task.poll()
        run.task.poll()  # It answers, so the count begins anew.
        for _ in range(2):
            with pytest.raises(RetriableConnectError):
                run.task.poll()
        with pytest.raises(ConnectError, match="tried 3 times: away") as failed:
            run.task.poll()
        assert not isinstance(failed.value, RetriableConnectError)


def test_a_fault_of_ours_is_raised_as_it_is_and_the_server_is_let_go() -> None:
    with captured(KeyError("column")) as run:
        with pytest.raises(KeyError, match="column"):
            run.task.poll()
        assert ServerTask.server.connections == 0


def test_a_heartbeat_keeps_the_position_of_a_server_at_rest() -> None:
    with captured(**{"heartbeat.interval.ms": "1"}) as run:
        run.run_until(lambda: "__debezium-heartbeat.p" in run.topics)
        ((partition, offset),) = run.offsets

    assert partition == {"server": "p"}
    assert offset is not None and offset["file"] == "log" and offset["ts_sec"] > 0
