"""A disk that fails under a leader: others lead, and what was acknowledged is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.injectors.shim import Shim, compiled, missing_means
from tests.integration.cluster.conftest import Topics
from tests.integration.cluster.writing import Stream, read_all
from tests.support.broker import BrokerProcess
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(missing_means() is not None, reason=str(missing_means()))


@contextmanager
def on_a_disk_that_obeys(
    broker: BrokerProcess, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Shim]:
    """The broker, started anew; afterwards it runs on an honest disk again."""
    shim = Shim(directory / "orders")
    settings = dict(broker.settings)
    try:
        with monkeypatch.context() as patched:
            patched.setenv("LD_PRELOAD", str(compiled(directory)))
            patched.setenv("FAULT_SHIM_ORDERS", str(directory / "orders"))
            broker.kill()
            broker.settings |= {"log.dirs": f"{broker.data},{broker.directory / 'data-2'}"}
            broker.start(timeout_s=120)
        yield shim
    finally:
        broker.kill()
        broker.settings = settings
        broker.settings["log.dirs"] = f"{broker.data},{broker.directory / 'data-2'}"
        broker.start(timeout_s=120)


@pytest.mark.parametrize(
    "what", ["failing_writes", pytest.param("failing_syncs", marks=pytest.mark.long)]
)
def test_a_leader_whose_disks_all_fail_ends_itself_and_others_lead(
    cluster: Cluster,
    topics: Topics,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    broker = cluster.brokers[1]
    with on_a_disk_that_obeys(broker, tmp_path, monkeypatch) as shim:
        topic = topics.create(f"dying-{what}", partitions=6, flush_ms="100")
        with Stream(cluster.bootstrap, topic) as stream:
            stream.until_more()
            shim.orders.directory = str(broker.data).encode()  # Both: a common prefix.
            setattr(shim.orders, what, -1)
            assert broker.wait(timeout_s=120) == 1
            stream.until_more(100)
        assert stream.failed == []
        assert "FATAL Shutdown broker because all log dirs in" in broker.log
        assert "replace the disk" in broker.log
        for directory in (broker.data, broker.directory / "data-2"):
            assert not (directory / ".kafka_cleanshutdown").exists()
        shim.clear()
        broker.start(timeout_s=120)
        # The page cache of a disk that failed is nothing to trust.
        assert "lossy before" in broker.log.rpartition("Shutdown broker")[2]
        cluster.until_in_sync(topic)
        assert set(stream.acked) <= {int(value) for value in read_all(cluster.bootstrap, topic)}


def test_one_disk_of_two_goes_offline_alone(
    cluster: Cluster, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = cluster.brokers[2]
    second = broker.directory / "data-2"
    lying = [topics.create("half-before", partitions=6)]
    with on_a_disk_that_obeys(broker, tmp_path, monkeypatch) as shim:
        cluster.until_in_sync(lying[0])
        lying.append(topics.create("half-after", partitions=6))  # Where the fewest are.
        eventually(
            lambda: bool(led_in(cluster, broker, lying, second)),
            timeout_s=120,
            what="the broker to lead on its second disk",
        )
        with Stream(cluster.bootstrap, lying[0]) as one, Stream(cluster.bootstrap, lying[1]) as two:
            one.until_more()
            two.until_more()
            shim.orders.directory = str(second).encode()
            shim.orders.failing_writes = -1
            eventually(
                lambda: not led_in(cluster, broker, lying, second),
                timeout_s=120,
                what="others to lead what lay on the failed disk",
            )
            one.until_more(100)
            two.until_more(100)
        assert one.failed == two.failed == []
        assert broker.answers()
        assert f"{second} is offline because" in broker.log
        held = {p.name for p in broker.data.glob("half-*")}
        isr_of_others = [
            p.isr_nodes
            for topic in lying
            for p in cluster.metadata(topic).topics[0].partitions
            if f"{topic}-{p.partition_index}" in held
        ]
        assert isr_of_others and all(2 in isr for isr in isr_of_others)
        for topic, stream in zip(lying, (one, two), strict=True):
            found = {int(value) for value in read_all(cluster.bootstrap, topic)}
            assert set(stream.acked) <= found
    for topic in lying:
        cluster.until_in_sync(topic)


def led_in(
    cluster: Cluster, broker: BrokerProcess, topics: list[str], directory: Path
) -> list[str]:
    """The partitions of a directory that the broker leads."""
    there = {p.name for p in directory.iterdir()}
    number = cluster.brokers.index(broker)
    return [
        name
        for topic in topics
        for p in cluster.metadata(topic).topics[0].partitions
        if p.leader_id == number and (name := f"{topic}-{p.partition_index}") in there
    ]
