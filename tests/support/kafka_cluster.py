"""Apache Kafka as a cluster of real processes: one controller and some brokers, in KRaft mode.

The controller is a process of its own, as ZooKeeper is beside our brokers, so that a broker can be
killed without the metadata going with it.
"""

import base64
import subprocess
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.support.apache_kafka import KafkaProcess
from tests.support.processes import HOST, free_port

CONTROLLER_ID = 100


class KafkaNode(KafkaProcess):
    """A controller or a broker of a cluster that has its id already."""

    def __init__(
        self,
        jars: Path,
        directory: Path,
        *,
        cluster_id: str,
        settings: Mapping[str, str],
        heap: str | None = None,
    ) -> None:
        super().__init__(jars, directory)
        self.cluster_id = cluster_id
        self.settings.update(settings)
        if heap is not None:
            sizes = {"-Xmx1G": f"-Xmx{heap}", "-Xms1G": f"-Xms{heap}"}
            self.command = [sizes.get(word, word) for word in self.command]

    def format(self) -> None:
        """What `kafka-storage.sh format` does, with the id of the cluster."""
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{self.jars}/*"]
        command += ["kafka.tools.StorageTool", "format", "-t", self.cluster_id]
        command += ["-c", str(self.properties)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"formatting failed:\n{done.stdout}\n{done.stderr}"


class KafkaCluster:
    """A controller and brokers 0, 1, 2, ...; `start` returns when all of them answer."""

    def __init__(
        self,
        jars: Path,
        directory: Path,
        *,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        heap: str | None = None,
    ) -> None:
        # Begins with a letter: an id that begins with a dash looks like an option to the tool.
        cluster_id = base64.urlsafe_b64encode(bytes(1) + uuid.uuid4().bytes[1:]).decode()[:22]
        controller_port = free_port()
        voters = {"controller.quorum.voters": f"{CONTROLLER_ID}@{HOST}:{controller_port}"}

        def node(name: str, own: Mapping[str, str]) -> KafkaNode:
            return KafkaNode(
                jars,
                directory / name,
                cluster_id=cluster_id,
                settings={**voters, **(settings or {}), **own},
                heap=heap,
            )

        self.controller = node(
            "controller",
            {
                "process.roles": "controller",
                "node.id": str(CONTROLLER_ID),
                "listeners": f"CONTROLLER://{HOST}:{controller_port}",
            },
        )
        self.controller.settings.pop("advertised.listeners")
        self.controller.port = controller_port
        self.brokers = []
        for number in range(brokers):
            broker = node(f"kafka-{number}", {"process.roles": "broker", "node.id": str(number)})
            address = f"PLAINTEXT://{HOST}:{broker.port}"
            broker.settings.update({"listeners": address, "advertised.listeners": address})
            self.brokers.append(broker)

    @property
    def bootstrap(self) -> str:
        """All brokers, as clients want them."""
        return ",".join(broker.address for broker in self.brokers)

    def start(self) -> None:
        """Start all at once; a JVM takes its time."""
        with ExitStack() as failed:
            failed.callback(self.kill)
            for node in (self.controller, *self.brokers):
                node.launch()
            for node in (self.controller, *self.brokers):
                node.wait_until_ready(timeout_s=180)
            failed.pop_all()

    def kill(self) -> None:
        """End whatever runs."""
        for node in (*self.brokers, self.controller):
            node.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
