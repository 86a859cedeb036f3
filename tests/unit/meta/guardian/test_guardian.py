"""A broker killed with -9 is gone from ZooKeeper at once, and a guardian outlives nobody."""

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.secure_zookeeper import KeyFiles
from tests.support.waiting import eventually
from tests.support.zookeeper import ZkStores, ZooKeeperProcess

from penstock.meta.guardian.guardian import spawn_guardian
from penstock.meta.guardian.process import last_session, tls_context
from penstock.meta.store import Create
from penstock.meta.zookeeper.tls import zookeeper_tls

SESSION_MS = 300_000
LONG_BEFORE_THE_SESSION_S = 120

# What a broker does: a session with an ephemeral node, watched by a guardian, until told to end.
BROKER = """
import asyncio, subprocess, sys
from penstock.meta.guardian.guardian import spawn_guardian
from penstock.meta.store import Create
from penstock.meta.zookeeper.store import ZkStore

async def main(connect, session_timeout_ms):
    guardian = spawn_guardian(connect)
    store = await ZkStore.open(connect, session_timeout_ms=session_timeout_ms)
    await store.multi([Create("/mine", ephemeral=True)])
    guardian.watch(*store.session_secret, session_timeout_ms)
    # Another child, which lives on: it must not keep the guardian waiting.
    other = subprocess.Popen(["sleep", "600"], close_fds=False)
    print(guardian.pid, other.pid, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    other.kill()
    other.wait()
    await store.close()
    guardian.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


class Broker:
    """The process above, and those it started."""

    def __init__(self, connect: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", BROKER, connect, str(SESSION_MS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        words = self.process.stdout.readline().split()
        self.guardian_pid, self.other_pid = map(int, words)


@contextmanager
def running(connect: str) -> Iterator[Broker]:
    broker = Broker(connect)
    try:
        yield broker
    finally:
        with broker.process:
            broker.process.kill()
        for pid in (broker.guardian_pid, broker.other_pid):
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)


def is_running(pid: int) -> bool:
    """A zombie does not count: whoever adopts orphans here may be slow to bury them."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


async def until_gone(stores: ZkStores, limit_s: float) -> None:
    store = await stores.open()
    give_up_s = time.monotonic() + limit_s
    while "mine" in await store.children("/"):
        assert time.monotonic() < give_up_s, "the ephemeral node of the dead broker stayed"
        await asyncio.sleep(0.01)


async def test_the_nodes_of_a_killed_broker_go_long_before_its_session(
    zk_stores: ZkStores,
) -> None:
    with running(zk_stores.connect) as broker:
        os.kill(broker.process.pid, signal.SIGKILL)
        await until_gone(zk_stores, LONG_BEFORE_THE_SESSION_S)
        eventually(lambda: not is_running(broker.guardian_pid), what="the guardian's end")


async def test_a_guardian_does_nothing_when_the_session_was_released(zk_stores: ZkStores) -> None:
    store = await zk_stores.open(session_timeout_ms=SESSION_MS)
    await store.multi([Create("/mine", ephemeral=True)])
    guardian = spawn_guardian(zk_stores.connect)
    guardian.watch(*store.session_secret, SESSION_MS)
    guardian.close()
    assert not is_running(guardian.pid)
    assert await store.children("/") == ["mine"]


async def test_a_broker_that_ends_in_good_order_leaves_no_guardian(zk_stores: ZkStores) -> None:
    with running(zk_stores.connect) as broker:
        broker.process.communicate("end\n", timeout=120)
        assert broker.process.returncode == 0
        assert not is_running(broker.guardian_pid)
    await until_gone(zk_stores, LONG_BEFORE_THE_SESSION_S)


async def test_a_dead_guardian_is_replaced_for_the_next_session(zk_stores: ZkStores) -> None:
    store = await zk_stores.open(session_timeout_ms=SESSION_MS)
    guardian = spawn_guardian(zk_stores.connect)
    first = guardian.pid
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not is_running(first), what="the guardian's end")
    guardian.release()  # Nobody hears it, and that is no error.
    guardian.watch(*store.session_secret, SESSION_MS)
    assert guardian.pid != first
    assert is_running(guardian.pid)
    guardian.close()


async def test_a_guardian_waits_for_a_server_that_comes_back(
    tmp_path: Path,
) -> None:
    with ZooKeeperProcess(tmp_path) as server:
        stores = ZkStores(server, "/here")
        with running(stores.connect) as broker:
            server.kill()
            os.kill(broker.process.pid, signal.SIGKILL)
            server.start()
            await until_gone(stores, LONG_BEFORE_THE_SESSION_S)
        await stores.aclose()


@pytest.mark.parametrize(
    ("heard", "session"),
    [
        (b"", None),
        (b"watch 7 00ff 6000\n", (7, b"\0\xff", 6000)),
        (b"watch -7 00 6000\nrelease\n", None),
        (b"watch 7 00 6000\nwatch -8 01 9000\n", (-8, b"\1", 9000)),
        (b"watch 7 00 6000\nrelea", (7, b"\0", 6000)),
        (b"watch 7 0", None),
    ],
)
def test_the_last_full_line_counts(heard: bytes, session: tuple[int, bytes, int] | None) -> None:
    assert last_session(heard) == session


def test_a_guardian_makes_the_context_that_its_broker_told_of(tmp_path: Path) -> None:
    keys = KeyFiles(tmp_path, "broker")
    told = keys.zookeeper_settings(
        "broker", enabled_protocols="TLSv1.2,TLSv1.3", endpoint_identification_algorithm=""
    )
    tls = zookeeper_tls(told)
    assert tls is not None
    heard = f"tls {json.dumps(tls.portable())}\nwatch 1 00 5\n".encode()
    made, own = tls_context(heard), tls.client_context()
    assert made is not None
    assert made.get_ca_certs() == own.get_ca_certs() != []
    assert (made.minimum_version, made.maximum_version, made.check_hostname) == (
        own.minimum_version,
        own.maximum_version,
        own.check_hostname,
    )
    assert made.verify_mode is ssl.CERT_REQUIRED
    assert last_session(heard) == (1, b"\0", 5)
    assert tls_context(b"watch 1 00 5\n") is None
