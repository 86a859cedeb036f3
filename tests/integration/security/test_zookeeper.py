"""ZooKeeper over TLS: who comes in, to whom nodes belong, and how they change hands."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.support.apache_kafka import LAST_WITH_ZOOKEEPER
from tests.support.key_stores import make_identity
from tests.support.outside import needs
from tests.support.processes import HOST
from tests.support.secure_zookeeper import KeyFiles, SecureZooKeeper
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually

from penstock.cli.tools.zookeeper import security_migration, zookeeper_shell
from penstock.cluster.znode_access import secure_access
from penstock.cluster.znodes import PERSISTENT_PATHS
from penstock.config.properties import format_properties
from penstock.meta.store import Create, MetaError, SessionState, Set, StoreUnavailable
from penstock.meta.zookeeper.grants import Grant
from penstock.meta.zookeeper.nodes import ZkNodes
from penstock.meta.zookeeper.requests import AccessOf, all_open
from penstock.meta.zookeeper.store import ZkStore
from penstock.meta.zookeeper.tls import zookeeper_tls

ALL, READ = 31, 1
BROKER = Grant("x509", "CN=broker", ALL)
ANYONE = Grant("world", "anyone", ALL)
READERS = Grant("world", "anyone", READ)


class Ground:
    """A secured ZooKeeper and those who may come."""

    def __init__(self, zookeeper: SecureZooKeeper, keys: KeyFiles) -> None:
        self.zookeeper = zookeeper
        self.keys = keys

    async def open(
        self, chroot: str, name: str = "broker", access_of: AccessOf = all_open, **more: str
    ) -> ZkStore:
        return await ZkStore.open(
            self.zookeeper.connect + chroot,
            session_timeout_ms=20_000,
            tls=zookeeper_tls(self.keys.zookeeper_settings(name, **more)),
            access_of=access_of,
        )

    def run(
        self,
        chroot: str,
        act: Callable[[ZkStore], Awaitable[object]],
        name: str = "broker",
        access_of: AccessOf = all_open,
    ) -> None:
        async def opened() -> None:
            store = await self.open(chroot, name, access_of)
            try:
                await act(store)
            finally:
                await store.close()

        asyncio.run(opened())

    def nodes(self, chroot: str, name: str = "broker") -> ZkNodes:
        tls = zookeeper_tls(self.keys.zookeeper_settings(name))
        return ZkNodes(self.zookeeper.connect + chroot, connect_s=60, tls=tls)

    def tls_file(self, name: str = "broker") -> Path:
        file = self.keys.directory / f"{name}.properties"
        file.write_text(format_properties(self.keys.zookeeper_settings(name)))
        return file

    def grants(self, chroot: str) -> dict[str, list[Grant]]:
        with self.nodes(chroot) as nodes:
            return {path: nodes.grants(path)[0] for path in nodes.descend("/")}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    directory = tmp_path_factory.mktemp("zookeeper")
    keys = KeyFiles(directory / "keys", "zookeeper", "broker", "somebody")
    keys.add("stranger", make_identity("stranger", issuer=make_identity("another authority")))
    settings, context = keys.server_settings("zookeeper"), keys.context("zookeeper")
    with SecureZooKeeper(directory / "zookeeper", settings, context) as zookeeper:
        yield Ground(zookeeper, keys)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_many_requests_at_once_are_answered_over_tls(ground: Ground, version: str) -> None:
    async def ask_much() -> None:
        store = await ground.open(f"/much-{version}", protocol=version)
        await store.multi([Create("/large", b"x" * 400_000)])
        for number in range(50):
            await store.multi([Create(f"/{number}", b"%d" % number)])
        found = await asyncio.gather(*(store.get(f"/{number}") for number in range(50)))
        assert [data for data, _ in found] == [b"%d" % number for number in range(50)]
        assert (await store.get("/large"))[0] == b"x" * 400_000
        await store.close()

    asyncio.run(asyncio.wait_for(ask_much(), 120))


def test_nodes_belong_to_the_brokers_and_secrets_are_theirs_alone(ground: Ground) -> None:
    made = ("/consumers", "/brokers", "/config", "/config/users", "/config/users/alice")

    async def make(store: ZkStore) -> None:
        await store.multi([Create(path) for path in made])

    ground.run("/owned", make, access_of=secure_access)
    found = ground.grants("/owned")
    assert found["/"] == found["/brokers"] == found["/config"] == [BROKER, READERS]
    assert found["/config/users"] == found["/config/users/alice"] == [BROKER]
    assert found["/consumers"] == [ANYONE]

    async def meddle(store: ZkStore) -> None:
        await store.get("/brokers")
        with pytest.raises(MetaError, match="access list"):
            await store.get("/config/users/alice")
        with pytest.raises(MetaError, match="access list"):
            await store.multi_get(["/config/users/alice"])
        with pytest.raises(MetaError, match="/brokers kept from us"):
            await store.multi([Set("/brokers", b"mine")])

    ground.run("/owned", meddle, name="somebody")


@pytest.mark.parametrize(
    ("name", "host", "more", "why"),
    [
        ("stranger", HOST, {}, "ALERT|quorum"),
        ("broker", "localhost", {}, "Hostname mismatch"),
        ("broker", HOST, {"truststore_location": "stranger"}, "CERTIFICATE_VERIFY_FAILED"),
    ],
)
def test_who_is_not_believed_gets_no_session(
    ground: Ground, name: str, host: str, more: dict[str, str], why: str
) -> None:
    more = {key: str(ground.keys.path(value)) for key, value in more.items()}
    tls = zookeeper_tls(ground.keys.zookeeper_settings(name, **more))
    connect = f"{host}:{ground.zookeeper.port}"
    with pytest.raises(StoreUnavailable, match=why):
        asyncio.run(ZkStore.open(connect, connection_timeout_ms=3000, tls=tls))


def test_a_host_name_is_not_checked_where_nobody_asks_for_it(ground: Ground) -> None:
    named = ground.keys.zookeeper_settings("broker", endpoint_identification_algorithm="")
    connect = f"localhost:{ground.zookeeper.port}"

    async def come() -> None:
        await (await ZkStore.open(connect, tls=zookeeper_tls(named))).close()

    asyncio.run(come())


def test_plain_text_is_told_to_look_at_the_port(ground: Ground) -> None:
    with pytest.raises(StoreUnavailable, match="port for TLS"):
        asyncio.run(ZkStore.open(ground.zookeeper.connect, connection_timeout_ms=2000))


def test_a_session_goes_on_over_a_new_connection(ground: Ground) -> None:
    async def reach(store: ZkStore, state: SessionState) -> None:
        async with asyncio.timeout(120):
            while store.session_state is not state:
                await asyncio.sleep(0.01)

    async def break_and_heal() -> None:
        with TcpProxy(ground.zookeeper.port) as proxy:
            tls = zookeeper_tls(ground.keys.zookeeper_settings("broker"))
            connect = f"{HOST}:{proxy.port}/cut"
            store = await ZkStore.open(connect, session_timeout_ms=300_000, tls=tls)
            await store.multi([Create("/mine", ephemeral=True)])
            before = store.session_id
            for stop, go_on in ((proxy.cut, proxy.heal), (store._link.hold, store._link.release)):
                stop()
                await reach(store, SessionState.SUSPENDED)
                go_on()
                await reach(store, SessionState.CONNECTED)
                assert (await store.get("/mine"))[1].owner == before
            await store.close()

    asyncio.run(break_and_heal())


# What a broker does: a session with an ephemeral node, watched by a guardian.
DYING = """
import asyncio, json, sys
from penstock.meta.guardian.guardian import spawn_guardian
from penstock.meta.store import Create
from penstock.meta.zookeeper.store import ZkStore
from penstock.meta.zookeeper.tls import zookeeper_tls

async def main(connect, settings):
    tls = zookeeper_tls(settings)
    guardian = spawn_guardian(connect, tls)
    store = await ZkStore.open(connect, session_timeout_ms=300_000, tls=tls)
    await store.multi([Create("/mine", ephemeral=True)])
    guardian.watch(*store.session_secret, 300_000)
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
"""


def test_a_killed_brokers_session_ends_at_once(ground: Ground) -> None:
    connect = ground.zookeeper.connect + "/dying"
    settings = json.dumps(ground.keys.zookeeper_settings("broker"))
    command = [sys.executable, "-c", DYING, connect, settings]
    with ground.nodes("") as nodes:
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert broker.stdout is not None
        assert broker.stdout.readline() == "ready\n"
        assert nodes.children("/dying") == ["mine"]
        broker.send_signal(signal.SIGKILL)
        broker.wait()
        broker.stdout.close()
        eventually(lambda: nodes.children("/dying") == [], timeout_s=120)


async def _make_cluster(store: ZkStore) -> None:
    more = ("/controller_epoch", "/config/users/alice", "/config/topics/t", "/brokers/topics/t")
    await store.multi([Create(path) for path in (*PERSISTENT_PATHS, *more)])


def test_a_cluster_is_given_to_its_brokers_and_back(
    ground: Ground, capsys: pytest.CaptureFixture[str]
) -> None:
    ground.run("/moved", _make_cluster)
    assert set(map(tuple, ground.grants("/moved").values())) == {(ANYONE,)}
    words = ["--zookeeper.connect", f"{ground.zookeeper.connect}/moved"]
    words += ["--zk-tls-config-file", str(ground.tls_file())]
    checked = [*words, "--zookeeper.acl", "secure", "--enable.path.check"]
    assert security_migration.main(checked) == 1
    assert "do not exist in ZooKeeper: /controller,/migration,/feature" in capsys.readouterr().out
    assert security_migration.main([*words, "--zookeeper.acl", "secure"]) == 0
    ours = ground.grants("/moved")
    assert ours["/brokers/topics/t"] == [BROKER, READERS]
    assert ours["/config/users/alice"] == ours["/config/brokers"] == [BROKER]
    assert security_migration.main([*words, "--zookeeper.acl", "unsecure"]) == 0
    assert set(map(tuple, ground.grants("/moved").values())) == {(ANYONE,)}


@pytest.mark.kafka
def test_kafkas_own_tool_gives_the_nodes_the_same_lists(ground: Ground) -> None:
    jars = needs(LAST_WITH_ZOOKEEPER)
    found = []
    for chroot in ("/by-us", "/by-kafka"):
        ground.run(chroot, _make_cluster)
        words = ["--zookeeper.connect", ground.zookeeper.connect + chroot]
        words += ["--zookeeper.acl", "secure", "--zk-tls-config-file", str(ground.tls_file())]
        if chroot == "/by-us":
            assert security_migration.main(words) == 0
        else:
            tool = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
            tool += ["kafka.admin.ZkSecurityMigrator", *words]
            done = subprocess.run(tool, capture_output=True, text=True, timeout=180)
            assert done.returncode == 0, done.stderr
        grants = ground.grants(chroot)
        found.append({p: g for p, g in grants.items() if not p.startswith("/ext")})
    assert found[0] == found[1]
    assert found[0]["/brokers"] == [BROKER, READERS]


def test_the_shell_comes_in_with_a_file(ground: Ground, capsys: pytest.CaptureFixture[str]) -> None:
    address = ground.zookeeper.connect
    file = str(ground.tls_file())
    assert zookeeper_shell.main([address, "-zk-tls-config-file", file, "ls", "/zookeeper"]) == 0
    assert "[config, quota]" in capsys.readouterr().out
