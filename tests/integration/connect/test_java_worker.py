"""A Java connector in a worker on Spark: exactly once though its processes are killed."""

from pathlib import Path

from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess, kill, task_processes
from tests.support.connect_files import has_lines
from tests.support.outside import needs
from tests.support.waiting import eventually

_WAIT_S = 300.0
_CLASS = "java:org.apache.kafka.connect.file.FileStreamSourceConnector"


def test_lines_arrive_once_through_java_though_processes_are_killed(
    shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    names = {f"{what}.storage.topic": f"java-{what}" for what in ("config", "offset", "status")}
    settings = {"group.id": "java", **names, "plugin.path": str(needs("connect-file-4.3.1"))}
    lines = [f"line {n}" for n in range(6000)]
    file = tmp_path / "in.txt"
    file.write_text("".join(f"{line}\n" for line in lines[:2000]))
    config = {"connector.class": _CLASS, "topic": "java-lines", "file": str(file)}
    with ConnectProcess(tmp_path / "connect", shared_broker.address, settings) as worker:
        worker.start(timeout_s=_WAIT_S)
        listed = worker.ask("GET", "/connector-plugins")[1]
        assert {"class": _CLASS, "type": "source", "version": "4.3.1"} in listed
        status, refused = worker.ask("PUT", "/connectors/bad/config", {"connector.class": _CLASS})
        assert status == 400 and 'configuration "topic"' in refused["message"]
        assert worker.ask("PUT", "/connectors/lines/config", config)[0] == 201
        eventually(lambda: has_lines(shared_broker, "java-lines", lines[:2000]), timeout_s=_WAIT_S)
        for process in task_processes(worker):
            kill(process.pid)
        with file.open("a") as more:
            more.write("".join(f"{line}\n" for line in lines[2000:4000]))
        eventually(lambda: has_lines(shared_broker, "java-lines", lines[:4000]), timeout_s=_WAIT_S)
        worker.kill()  # With Spark, and with the JVMs of tasks.
        with file.open("a") as more:
            more.write("".join(f"{line}\n" for line in lines[4000:]))
        worker.start(timeout_s=_WAIT_S)
        eventually(lambda: has_lines(shared_broker, "java-lines", lines), timeout_s=_WAIT_S)
        offsets = worker.ask("GET", "/connectors/lines/offsets")[1]
        assert offsets["offsets"][0]["offset"] == {"position": file.stat().st_size}
        assert worker.stop() == 0, worker.log_end
