"""Apache Kafka's own command-line tools, from its jars, against the broker."""

from pathlib import Path

import pytest
from tests.support.java import run_java
from tests.support.outside import needs
from tests.support.processes import ServerProcess

pytestmark = pytest.mark.kafka

CURRENT = "kafka-4.3.1"
CONFIGS, FEATURES = "kafka.admin.ConfigCommand", "org.apache.kafka.tools.FeatureCommand"


def tool(server: ServerProcess, main: str, *arguments: str) -> str:
    """What the tool prints; it fails if the tool does."""
    jars: Path = needs(CURRENT)
    return run_java(f"{jars}/*", main, "--bootstrap-server", server.address, *arguments)


def test_users_without_passwords_and_quotas_are_nobody(server: ServerProcess) -> None:
    assert tool(server, CONFIGS, "--describe", "--entity-type", "users") == ""


def test_a_setting_nobody_knows_is_stored_and_hidden(server: ServerProcess) -> None:
    brokers = ("--entity-type", "brokers", "--entity-default")
    told = tool(server, CONFIGS, "--alter", *brokers, "--add-config", "no.such=5")
    assert told.startswith("Completed updating default config for brokers in the cluster")
    lines = tool(server, CONFIGS, "--describe", *brokers).splitlines()
    shown = {line.split("=")[0].strip(): line for line in lines[1:]}
    assert "no.such=null sensitive=true" in shown["no.such"]
    assert "min.insync.replicas=1 sensitive=false" in shown["min.insync.replicas"]


def test_the_features_are_those_that_the_broker_has(server: ServerProcess) -> None:
    rows = [line.split() for line in tool(server, FEATURES, "describe").splitlines()]
    levels = {row[1]: row[row.index("FinalizedVersionLevel:") + 1] for row in rows}
    ours = {
        "eligible.leader.replicas.version": "1",
        "group.version": "1",
        "transaction.version": "2",
    }
    assert {name: levels.get(name) for name in ours} == ours
