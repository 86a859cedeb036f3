"""Apache Kafka itself as a real process: one node in KRaft mode with its default settings.

The bench measures against it, and the compatibility tests move data directories to and from it.
"""

import base64
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.support.processes import HOST, ServerProcess, free_port

CURRENT = "kafka-4.3.1"
LAST_WITH_ZOOKEEPER = "kafka-3.9.1"
# What kafka-server-start.sh gives the virtual machine when nobody says otherwise.
JVM_OPTIONS = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]


class KafkaProcess(ServerProcess):
    """An Apache Kafka from a folder of jars, with its data in `directory`."""

    def __init__(
        self, jars: Path, directory: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.jars = jars
        self.directory = directory
        self.data = directory / "data"
        port, controller_port = free_port(), free_port()
        self.properties = directory / "server.properties"
        self.settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **(settings or {}),
        }
        command = ["java", *JVM_OPTIONS, "-cp", f"{jars}/*", "kafka.Kafka", str(self.properties)]
        super().__init__(command, port=port, log_path=directory / "server.log")

    def launch(self) -> None:
        """Format the storage if it is new, then start."""
        self.prepare()
        super().launch()

    def prepare(self) -> None:
        """Write down the settings, and format the storage if it is new."""
        lines = [f"{name}={value}\n" for name, value in self.settings.items()]
        self.properties.write_text("".join(lines))
        if not (self.data / "meta.properties").exists():
            self.format()

    def format(self) -> None:
        """What `kafka-storage.sh format` does."""
        # Begins with a letter: an id that begins with a dash looks like an option to the tool.
        cluster_id = base64.urlsafe_b64encode(bytes(1) + uuid.uuid4().bytes[1:]).decode()[:22]
        command = ["java", "-cp", f"{self.jars}/*", "kafka.tools.StorageTool", "format"]
        command += ["-t", cluster_id, "-c", str(self.properties)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"formatting failed:\n{done.stdout}\n{done.stderr}"

    def start(self, *, timeout_s: float = 180.0) -> None:
        """Start, and wait until ApiVersions is answered."""
        super().start(timeout_s=timeout_s)

    def partition_dir(self, topic: str, partition: int = 0) -> Path:
        """Where the partition's segments are."""
        return self.data / f"{topic}-{partition}"
