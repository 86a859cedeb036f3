"""Topics filled for these tests, and the command that lands them."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.support.broker import BrokerProcess
from tests.support.processes import python

from penstock.client.admin import Admin
from penstock.client.operations.topics import NewTopic
from penstock.client.producer.producer import Producer


def create(broker: BrokerProcess, topic: str, *, partitions: int = 2) -> None:
    with Admin(bootstrap_servers=broker.address) as admin:
        admin.create_topics([NewTopic(name=topic, partitions=partitions, replication_factor=1)])


def send(broker: BrokerProcess, topic: str, values: Iterable[Mapping[str, Any] | bytes]) -> None:
    """JSON objects, or bytes as they are."""
    with Producer({"bootstrap.servers": broker.address}) as producer:
        for value in values:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            producer.send(topic, value=data)
        producer.flush()


def sync_command(
    broker: BrokerProcess, topic: str, table: Path, *options: str, env: Mapping[str, str]
) -> "subprocess.Popen[str]":
    """`penstock lake sync` as a process of its own."""
    command = [python(), "-m", "penstock.cli.main", "lake", "sync", topic]
    command += ["--bootstrap-server", broker.address, "--to", str(table), *options]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=dict(env),
        start_new_session=True,
    )
