"""Asks a real Apache worker for the answers in tests/golden/connect, and writes them there.

For developers: `python -m tests.support.connect_golden JARS`, where JARS is a folder with
connect-file of the release below; the rest is in .cache/java. Takes two minutes.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess
from tests.support.connect_script import answers
from tests.support.processes import ROOT
from tests.support.waiting import eventually

GOLDEN = ROOT / "tests" / "golden" / "connect" / "rest.json"
_JARS = ROOT / ".cache" / "java" / "kafka-4.3.1"
_LOGGING = """\
<Configuration>
  <Appenders><Console name="c"><PatternLayout pattern="%d %p %m%n"/></Console></Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="c"/></Root></Loggers>
</Configuration>
"""


class ApacheConnectProcess(ConnectProcess):
    """Apache's worker, with the settings that ours is tested with."""

    def __init__(self, directory: Path, bootstrap: str, plugins: Path) -> None:
        super().__init__(directory, bootstrap, {"plugin.path": str(plugins)})
        logging = directory / "log4j2.xml"
        logging.write_text(_LOGGING)
        ours = [name for name in self.settings if name.startswith("penstock.")]
        self.settings = {k: v for k, v in self.settings.items() if k not in ours}
        self.command = ["java", "-Xmx512m", "-XX:+UseSerialGC"]
        self.command += [f"-Dlog4j2.configurationFile={logging}", "-cp", f"{_JARS}/*:{plugins}/*"]
        self.command += ["org.apache.kafka.connect.cli.ConnectDistributed", str(self.file)]


def main(plugins: Path) -> None:
    """Record."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        (directory / "in.txt").write_text("one\ntwo\nthree\n")
        with BrokerProcess(directory / "broker") as broker:
            broker.start()
            with ApacheConnectProcess(directory / "connect", broker.address, plugins) as worker:
                worker.launch()
                eventually(worker.answers, timeout_s=240, every_s=1)
                told = answers(worker.url, directory)
    GOLDEN.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]).resolve())
    except (IndexError, subprocess.SubprocessError) as error:
        sys.exit(f"{__doc__}\n{error}")
