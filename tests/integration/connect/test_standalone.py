"""The tutorial's lab word for word: connect-standalone with a file source and a file sink."""

from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.processes import ROOT, python
from tests.support.waiting import eventually

from penstock.config.properties import format_properties, parse_properties
from penstock.connect.store.java_map import decode_map

_WAIT_S = 120.0
_CONNECTORS = ("connect-file-source.properties", "connect-file-sink.properties")


@pytest.fixture
def worker(shared_broker: BrokerProcess, tmp_path: Path) -> ConnectProcess:
    """A standalone worker with the two connectors, as config/ has them, not started."""
    process = ConnectProcess(tmp_path / "connect", shared_broker.address)
    shipped = parse_properties((ROOT / "config" / "connect-standalone.properties").read_text())
    own = ("bootstrap.servers", "listeners", "penstock.connect.tasks.max")
    process.settings = (
        shipped
        | {name: process.settings[name] for name in own}
        | {
            "offset.storage.file.filename": str(tmp_path / "data" / "connect.offsets"),
            "offset.flush.interval.ms": "200",
        }
    )
    words = ["connect", "standalone", str(process.file)]
    for name in _CONNECTORS:
        connector = parse_properties((ROOT / "config" / name).read_text())
        connector["file"] = str(tmp_path / connector["file"])
        (tmp_path / name).write_text(format_properties(connector))
        words.append(str(tmp_path / name))
    process.command = [python(), "-m", "penstock.cli.main", *words]
    return process


def test_lines_of_one_file_become_lines_of_another_and_go_on_after_a_stop(
    worker: ConnectProcess, tmp_path: Path
) -> None:
    (tmp_path / "test.txt").write_text("foo\nbar\n")
    sink = tmp_path / "test.sink.txt"
    with worker:
        worker.start()
        eventually(lambda: sink.exists() and sink.read_text() == "foo\nbar\n", timeout_s=_WAIT_S)
        assert worker.ask("GET", "/connectors")[1] == ["local-file-source", "local-file-sink"]
        assert worker.stop() == 0, worker.log_end
        kept = decode_map((tmp_path / "data" / "connect.offsets").read_bytes())
        key = f'["local-file-source",{{"filename":"{tmp_path}/test.txt"}}]'.encode()
        assert kept == {key: b'{"position":8}'}
        with (tmp_path / "test.txt").open("a") as file:
            file.write("another line\n")
        worker.start()
        whole = "foo\nbar\nanother line\n"
        eventually(lambda: sink.read_text() == whole, timeout_s=_WAIT_S)
        assert worker.stop() == 0, worker.log_end
