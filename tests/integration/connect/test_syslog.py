"""The syslog source over real sockets."""

import json
import socket

import pytest
from tests.support.processes import HOST

from penstock.connect.connectors.syslog.source import SyslogSourceConnector
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.testing import SourceRun, refused_settings
from penstock.connect.testing.checks import JSON

CONFIG = {"topic": "t", "syslog.port": "0", "syslog.listen.address": HOST}


def test_datagrams_become_records() -> None:
    with (
        SourceRun(SyslogSourceConnector, CONFIG, converters=JSON) as run,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        for data in (b"<34>1 2025-10-11T22:14:15Z h app - - - hello\n", b"\xff plain", b""):
            sender.sendto(data, (HOST, run.task.listener.port))
        run.run_until(lambda: len(run.values("t")) >= 2)
        first, second = (json.loads(one) for one in run.values("t"))
        assert (first["host"], first["app_name"], first["message"]) == ("h", "app", "hello")
        assert first["remote_address"] == HOST and run.keys("t") == [f'"{HOST}"'] * 2
        assert run.topics["t"][0].timestamp_ms == 1760220855000
        assert (second["type"], second["message"]) == ("UNKNOWN", "\\xff plain")


def test_connections_bring_lines_and_counted_messages_and_a_slow_topic_holds_them_back() -> None:
    tcp = {"syslog.listener": "TCP", "syslog.queue.max.size": "5"}
    with SourceRun(SyslogSourceConnector, CONFIG | tcp, converters=JSON) as run:
        place = (HOST, run.task.listener.port)
        with socket.create_connection(place) as one, socket.create_connection(place) as other:
            one.sendall(b"".join(b"<13>line %d\n" % n for n in range(100)))
            other.sendall(b"11 <13>counted<13>no end")
            other.shutdown(socket.SHUT_WR)
            run.run_until(lambda: len(run.values("t")) >= 102)
        texts = [json.loads(one)["message"] for one in run.values("t")]
        assert [text for text in texts if "line" in text] == [f"line {n}" for n in range(100)]
        assert {"counted", "no end"} <= set(texts)


def test_a_port_that_is_taken_ends_the_task() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((HOST, 0))
        port = str(taken.getsockname()[1])
        with pytest.raises(ConnectError, match="cannot be used"):
            SourceRun(SyslogSourceConnector, CONFIG | {"syslog.port": port}).start()


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = {"syslog.port": "70000", "syslog.listener": "QUIC", "syslog.message.max.bytes": "1"}
    assert sorted(refused_settings(SyslogSourceConnector, wrong)) == [
        *("syslog.listener", "syslog.message.max.bytes", "syslog.port", "topic"),
    ]
