"""Apache Kafka in our place: the same faults and clients, to see what it would give them.

`python -m tests.faults --subject kafka-4.3.1` plays on brokers of Apache Kafka and a controller
of theirs. An error that clients are given there is none that ours has to be without.
"""

from dataclasses import dataclass
from pathlib import Path

from tests.faults.deployment import CLUSTER_SETTINGS, SETTINGS, BrokerNode, Deployment, Host
from tests.support.kafka_cluster import KafkaCluster, KafkaNode

HEAP = "400m"
# Those of ours that Apache Kafka 4 knows too.
SHARED = {
    name: value
    for name, value in {**SETTINGS, **CLUSTER_SETTINGS}.items()
    if not name.startswith("zookeeper.")
}


class ApacheNode(BrokerNode):
    """A broker of Apache Kafka that can be killed and paused like ours."""

    def __init__(self, kafka: KafkaNode, broker_id: int) -> None:
        super().__init__(kafka.directory, broker_id, {}, Host())
        self.kafka = kafka
        self.port = kafka.port

    def _command(self) -> list[str]:
        self.kafka.prepare()
        return self.kafka.command


@dataclass(slots=True, kw_only=True)
class ApacheDeployment(Deployment):
    jars: Path

    def start(self) -> None:
        # A broker that was killed stays a member for as long as its session; ours are told at once.
        settings = {**SHARED, "broker.session.timeout.ms": "3000"}
        cluster = KafkaCluster(
            self.jars,
            self.directory,
            brokers=self.plan.brokers,
            settings=settings,
            heap=HEAP,
        )
        self.stack.callback(cluster.kill)
        cluster.controller.launch()
        self.brokers = {n: ApacheNode(kafka, n) for n, kafka in enumerate(cluster.brokers)}
        self.start_missing()
        self.wait_for_all_brokers()
