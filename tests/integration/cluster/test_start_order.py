"""Brokers and ZooKeeper started in any order, or ZooKeeper started again under a broker's feet."""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from tests.support.broker import BrokerProcess
from tests.support.cluster import Cluster
from tests.support.processes import HOST
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperProcess

SESSION_MS = 4_000


def broker_for(directory: Path, connect: str) -> BrokerProcess:
    return BrokerProcess(
        directory,
        {
            "zookeeper.connect": connect,
            "zookeeper.session.timeout.ms": str(SESSION_MS),
            "zookeeper.connection.timeout.ms": "60000",
        },
        broker_id=5,
    )


def test_a_broker_waits_for_a_zookeeper_that_starts_later_and_again(tmp_path: Path) -> None:
    zookeeper = ZooKeeperProcess(tmp_path / "zookeeper")
    with ExitStack() as stack:
        stack.callback(zookeeper.kill)
        broker = stack.enter_context(broker_for(tmp_path / "broker", zookeeper.connect))
        broker.launch()
        eventually(lambda: "KafkaConfig values" in broker.log, what="the broker to begin")
        zookeeper.start()
        zookeeper.kill()  # At the moment it serves, so when the broker is about to begin.
        zookeeper.start()
        broker.wait_until_ready(timeout_s=120)
        assert broker.tracebacks() == {}


def test_a_connection_that_breaks_again_and_again_keeps_no_broker_from_starting(
    cluster: Cluster, tmp_path: Path
) -> None:
    with (
        TcpProxy(cluster.zookeeper.port) as proxy,
        broker_for(tmp_path, f"{HOST}:{proxy.port}/start-order") as broker,
    ):
        broker.launch()
        for cuts in range(1, 6):  # Wherever the start has come to.
            eventually(lambda seen=cuts: proxy.accepted >= seen, timeout_s=120)
            proxy.cut()
            proxy.heal()
        broker.wait_until_ready(timeout_s=120)
        assert broker.tracebacks() == {}


@contextmanager
def deaf_server(port: int, silent: int) -> Iterator[int]:
    """Takes connections and never answers the first ones; the others are passed on."""
    with TcpProxy(port) as proxy, closing(socket.create_server((HOST, 0))) as listener:
        kept: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                kept.append(client)
                if len(kept) > silent:
                    proxy._serve(client)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        for client in kept:
            client.close()


def test_a_server_that_takes_the_connection_and_stays_silent_is_asked_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Such a connection used up all the time there was: both are the session's by default."""
    with (
        deaf_server(cluster.zookeeper.port, silent=1) as port,
        broker_for(tmp_path, f"{HOST}:{port}/start-order-deaf") as broker,
    ):
        broker.settings["zookeeper.connection.timeout.ms"] = str(SESSION_MS)
        broker.start(timeout_s=120)


@pytest.mark.long
def test_a_zookeeper_that_never_gives_a_session_is_told(cluster: Cluster, tmp_path: Path) -> None:
    with (
        deaf_server(cluster.zookeeper.port, silent=100) as port,
        broker_for(tmp_path, f"{HOST}:{port}") as broker,
    ):
        broker.settings["zookeeper.connection.timeout.ms"] = "1500"
        broker.launch()
        assert broker.wait(timeout_s=120) == 1
        assert "gave no session" in broker.log_end
        assert "Start ZooKeeper, or correct zookeeper.connect" in broker.log_end
