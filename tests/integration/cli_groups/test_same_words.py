"""Apache Kafka's own tools on our broker beside ours: what they print is the same."""

import subprocess
from collections.abc import Callable

import confluent_kafka
import pytest
from tests.integration.cli.conftest import Tool
from tests.integration.cli_groups.conftest import Cluster, Join, RdMember, settled
from tests.support.broker import BrokerProcess
from tests.support.outside import needs

pytestmark = pytest.mark.kafka

Theirs = Callable[..., list[str]]
GROUPS = ("consumer-groups", "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand")
TRANSACTIONS = ("transactions", "org.apache.kafka.tools.TransactionsCommand")
RESETTER = ("streams-application-reset", "org.apache.kafka.tools.StreamsResetter")
ALL_KINDS = ("groups", "org.apache.kafka.tools.GroupsCommand")


@pytest.fixture(scope="module")
def theirs(broker: BrokerProcess) -> Theirs:
    """Runs a tool of Apache Kafka by its class; the lines it prints."""
    jars = needs("kafka-4.3.1")
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]

    def run_class(name: str, *words: str) -> list[str]:
        command = ["java", *options, "-cp", f"{jars}/*", name]
        command += ["--bootstrap-server", broker.address, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run_class


@pytest.fixture(scope="module")
def left(cluster: Cluster) -> str:
    """A group without members, and a transactional producer that has finished."""
    topic = cluster.create("words", 3, records=10)
    cluster.commit("left", topic, {0: 4, 1: 7})
    settings = {"bootstrap.servers": cluster.address, "transactional.id": "pays"}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(120)
    producer.begin_transaction()
    producer.produce(topic, b"paid", partition=2)
    producer.commit_transaction(120)
    return topic


CASES = [
    (GROUPS, "--list"),
    (GROUPS, "--list --state"),
    (GROUPS, "--list --state --type"),
    (GROUPS, "--list --type consumer"),
    (GROUPS, "--describe --all-groups"),
    (GROUPS, "--describe --group left --verbose"),
    (GROUPS, "--describe --all-groups --members"),
    (GROUPS, "--describe --all-groups --members --verbose"),
    (GROUPS, "--describe --all-groups --state"),
    (GROUPS, "--describe --all-groups --state --verbose"),
    (GROUPS, "--reset-offsets --dry-run --group left --topic words --to-earliest"),
    (GROUPS, "--reset-offsets --dry-run --group left --topic words:0,1 --shift-by -2"),
    (GROUPS, "--reset-offsets --dry-run --group left --all-topics --to-current --export"),
    (
        GROUPS,
        "--reset-offsets --dry-run --group left --topic words --to-datetime "
        "1970-01-01T00:00:03.500",
    ),
    (
        GROUPS,
        "--reset-offsets --dry-run --group left --topic words --to-datetime "
        "2099-01-01T00:00:00.000",
    ),
    (TRANSACTIONS, "list"),
    (TRANSACTIONS, "describe-producers --topic words --partition 2"),
    (TRANSACTIONS, "find-hanging --topic words"),
    (ALL_KINDS, "--list"),
    (ALL_KINDS, "--list --consumer"),
    (RESETTER, "--application-id left --input-topics words --dry-run"),
    (RESETTER, "--application-id left --input-topics words --dry-run --to-latest"),
]


def test_both_say_the_same(
    tool: Tool, theirs: Theirs, left: str, cluster: Cluster, join: Join
) -> None:
    old = join(RdMember, "at-work", left, client_id="a", group_instance_id="static-a")
    new = join(RdMember, "at-work-848", left, client_id="b", group_protocol="consumer")
    settled((old, 3), (new, 3))
    for (ours, java), words in CASES:
        found = tool(ours, *words.split()).lines
        expected = theirs(java, *words.split())
        # Kafka prints groups and partitions in the order of a hash table; ours are sorted.
        assert sorted(found) == sorted(expected), f"{ours} {words}"
