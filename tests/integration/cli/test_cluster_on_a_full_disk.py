"""`penstock cluster up` on one small disk: without a free byte its operator still makes room."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.integration.cli.conftest import command, run, start
from tests.support.disk import leave_no_byte, small_disk
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.operations.configs import ConfigChange, ConfigResource, ResourceType
from penstock.client.operations.topics import NewTopic
from penstock.errors import RetriableError

DISK_BYTES = 96_000_000
CHANGES = 100  # Far more than fit into what ZooKeeper's log has of its last block.
IS_UP = "Ctrl-C stops it."


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", size_bytes=DISK_BYTES) as directory:
        yield directory


@contextmanager
def cluster_up(disk: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The running command, and where its first broker listens."""
    process = start(command("cluster", "up", "--dir", disk / "dev", "--brokers", 2))
    try:
        shown = read_until(process, IS_UP)
        words = next(line for line in shown.splitlines() if "cluster status" in line).split()
        yield process, next(word for word in words if word.startswith("localhost:"))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)


def read_until(process: "subprocess.Popen[str]", wanted: str) -> str:
    assert process.stdout is not None
    shown = ""
    while wanted not in shown:
        line = process.stdout.readline()
        assert line, shown + (process.stderr.read() if process.stderr else "")
        shown += line
    return shown


def is_altered(admin: Admin, retention_ms: int) -> bool:
    """False: for a moment there is no controller, as ZooKeeper starts again."""
    topic = ConfigResource(ResourceType.TOPIC, "old")
    try:
        admin.alter_configs({topic: [ConfigChange(name="retention.ms", value=str(retention_ms))]})
    except RetriableError:
        return False
    return True


def test_topics_change_and_go_while_not_a_byte_is_free(disk: Path) -> None:
    with cluster_up(disk) as (process, address), Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(name="old", partitions=3, replication_factor=2)])
        reserve = disk / "dev" / "data" / "zookeeper" / "penstock-reserve"
        whole_bytes = reserve.stat().st_size
        for number in range(1, CHANGES + 1):
            if reserve.stat().st_size == whole_bytes:
                leave_no_byte(disk)  # Once more: brokers free a block now and then.
            eventually(partial(is_altered, admin, number * 1000), timeout_s=120)
        assert reserve.stat().st_size < whole_bytes
        told = read_until(process, "starts again with room that was kept for it")
        assert "the disk under" in told

    leave_no_byte(disk)
    with cluster_up(disk) as (_, address):
        assert run("topics", "--bootstrap-server", address, "--delete", "--topic", "old").code == 0
        assert "old" not in run("topics", "--bootstrap-server", address, "--list").lines
