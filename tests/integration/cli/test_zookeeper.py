"""ZooKeeper's own commands: the server started, looked into and stopped."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Done, command, run
from tests.support.processes import HOST, ServerProcess, free_port
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperProcess

BANNER = ["", "WATCHER::", "", "WatchedEvent state:SyncConnected type:None path:null"]


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    with ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


def shell(zookeeper: ZooKeeperProcess, *words: str, stdin: str = "") -> Done:
    return run("zookeeper-shell", zookeeper.connect, *words, stdin=stdin)


def test_one_command_is_run_as_zookeepers_shell_runs_it(zookeeper: ZooKeeperProcess) -> None:
    done = shell(zookeeper, "create", "/one", "a b")
    assert (done.code, done.err) == (0, "")
    assert done.lines == [f"Connecting to {zookeeper.connect}", *BANNER, "Created /one"]
    assert shell(zookeeper, "get", "/one").lines[-1] == "a b"


def test_commands_are_read_from_standard_input(zookeeper: ZooKeeperProcess) -> None:
    said = """
    create /many ""
    create /many/b 1
    create -s /many/s- 2
    create -e /many/mine 3
    ls /many
    set /many/b "x y"
    get /many/b
    ls -R /many
    getAllChildrenNumber /many
    delete /many/b
    deleteall /many
    ls /many
    quit
    ls /never
    """
    done = shell(zookeeper, stdin=said)
    assert done.lines == [
        f"Connecting to {zookeeper.connect}",
        "Welcome to ZooKeeper!",
        *BANNER,
        "Created /many",
        "Created /many/b",
        "Created /many/s-0000000001",
        "Created /many/mine",
        "[b, mine, s-0000000001]",
        "x y",
        "/many",
        "/many/b",
        "/many/mine",
        "/many/s-0000000001",
        "3",
    ]
    assert done.err == "Node does not exist: /many\n"
    assert done.code == 0


def test_a_stat_is_printed_as_tutorials_show_it(zookeeper: ZooKeeperProcess) -> None:
    shell(zookeeper, "create", "/stat", "12345")
    shell(zookeeper, "set", "/stat", "123456")
    lines = shell(zookeeper, "get", "-s", "/stat").lines[5:]
    assert lines[0] == "123456"
    names = [line.partition(" = ")[0] for line in lines[1:]]
    assert " ".join(names) == (
        "cZxid ctime mZxid mtime pZxid cversion dataVersion aclVersion ephemeralOwner dataLength "
        "numChildren"
    )
    assert {"dataVersion = 1", "ephemeralOwner = 0x0", "dataLength = 6"} <= set(lines)
    assert shell(zookeeper, "stat", "/stat").lines[5:] == lines[1:]
    assert shell(zookeeper, "ls", "-s", "/stat").lines[5:] == ["[]", *lines[1:]]


def test_a_watch_shows_the_next_change_and_no_other(zookeeper: ZooKeeperProcess) -> None:
    said = """
    create /seen 1
    get -w /seen
    ls -w /seen
    set /seen 2
    set /seen 3
    create /seen/child x
    sync /seen
    quit
    """
    lines = shell(zookeeper, stdin=said).lines
    assert [line for line in lines if line.startswith("WatchedEvent")][1:] == [
        "WatchedEvent state:SyncConnected type:NodeDataChanged path:/seen",
        "WatchedEvent state:SyncConnected type:NodeChildrenChanged path:/seen",
    ]
    assert "Sync is OK" in lines


def test_a_node_that_is_not_there_yet_can_be_watched(zookeeper: ZooKeeperProcess) -> None:
    done = shell(zookeeper, stdin="stat -w /later\ncreate /later 1\nsync /later\n")
    assert done.err == "Node does not exist: /later\n"
    assert "WatchedEvent state:SyncConnected type:NodeCreated path:/later" in done.lines


def test_a_node_can_be_kept_for_some(zookeeper: ZooKeeperProcess) -> None:
    said = """
    addauth digest anna:secret
    create /hers 1 auth::cdrwa
    getAcl /hers
    get /hers
    setAcl /hers digest:anna:+2Zo8bLQPDvsXZOxCyzVdvUDJUk=:cdrwa,world:anyone:c
    """
    done = shell(zookeeper, stdin=said)
    assert (done.code, done.err) == (0, "")
    created, who, rights, value = done.lines[6:]
    assert created == "Created /hers"
    assert who.startswith("'digest,'anna:")
    assert (rights, value) == (": cdrwa", "1")
    stranger = shell(zookeeper, "get", "/hers")
    assert (stranger.code, stranger.err) == (1, "Insufficient permission : /hers\n")


def test_a_node_is_open_to_all_unless_told_otherwise(zookeeper: ZooKeeperProcess) -> None:
    shell(zookeeper, "create", "/open", "")
    assert shell(zookeeper, "getAcl", "/open").lines[5:] == ["'world,'anyone", ": cdrwa"]
    shell(zookeeper, "setAcl", "/open", "world:anyone:ra")
    lines = shell(zookeeper, "getAcl", "-s", "/open").lines[5:]
    assert lines[:2] == ["'world,'anyone", ": ra"]
    assert "aclVersion = 1" in lines


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["get", "/none"], "Node does not exist: /none"),
        (["create", "/zookeeper", ""], "Node already exists: /zookeeper"),
        (["delete", "/full"], "Node not empty: /full"),
        (["set", "-v", "7", "/zookeeper/quota", ""], "version No is not valid : /zookeeper/quota"),
        (["get", "none"], "none is not a path"),
        (["get"], "get [-s] [-w] path"),
        (["get", "-x", "/"], "Unrecognized option: -x"),
        (["set", "-v", "x", "/a", "b"], "set [-s] [-v version] path data"),
        (["setAcl", "/full", "anyone:cdrwa"], "does not have the form scheme:id:perm"),
        (["setAcl", "/full", "world:anyone:x"], "does not have the form scheme:id:perm"),
        (["setAcl", "/full", "world:nobody:r"], "Acl is not valid : /full"),
        (["setAcl", "-v", "7", "/full", "world:anyone:r"], "version No is not valid : /full"),
        (["frob"], "Command not found: Command not found frob"),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_code_one(
    zookeeper: ZooKeeperProcess, words: list[str], sentence: str
) -> None:
    shell(zookeeper, stdin="create /full\ncreate /full/child\n")
    done = shell(zookeeper, *words)
    assert done.code == 1
    assert sentence in done.err


def test_a_root_that_is_not_there_has_no_nodes(zookeeper: ZooKeeperProcess) -> None:
    done = run("zookeeper-shell", f"{zookeeper.connect}/nowhere", "ls", "/")
    assert (done.code, done.err) == (1, "Node does not exist: /\n")
    shell(zookeeper, "create", "/root", "")
    made = run("zookeeper-shell", f"{zookeeper.connect}/root", "create", "/a", "")
    assert made.lines[-1] == "Created /a"
    assert shell(zookeeper, "ls", "/root").lines[-1] == "[a]"


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    file = tmp_path / "zookeeper.properties"
    file.write_text(f"dataDir={tmp_path / 'data'}\nclientPort={free_port()}\nmaxClientCnxns=0\n")
    return file


def port_of(properties: Path) -> int:
    return int(properties.read_text().split("clientPort=")[1].split()[0])


def nodes_at(port: int) -> bool:
    return run("zookeeper-shell", f"{HOST}:{port}", "ls", "/").lines[-1:] == ["[zookeeper]"]


def test_a_server_starts_from_its_file_and_stops_when_asked(properties: Path) -> None:
    port = port_of(properties)
    words = command("zookeeper-server-start", properties, "--override", "tickTime=500")
    with ServerProcess(words, port=port, log_path=properties.parent / "log") as server:
        server.launch()
        eventually(lambda: nodes_at(port), timeout_s=120, what="a ZooKeeper that answers")
        assert f"ZooKeeper listens at {HOST}:{port}, for this machine alone" in server.log
        assert "tickTime set to 500" in server.log or "tickTime 500" in server.log
        assert run("zookeeper-server-stop", "--client-port", port).code == 0
        server.wait()
    done = run("zookeeper-server-stop", "--client-port", port)
    assert (done.code, done.err) == (1, "No zookeeper server to stop\n")


def test_a_server_may_start_in_the_background(properties: Path) -> None:
    port = port_of(properties)
    words = command("zookeeper-server-start", "-daemon", properties)
    done = subprocess.run(words, cwd=properties.parent, timeout=120, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    try:
        eventually(lambda: nodes_at(port), timeout_s=120, what="a ZooKeeper that answers")
    finally:
        stopped = run("zookeeper-server-stop", "--client-port", port)
    assert stopped.code == 0
    assert "binding to port" in (properties.parent / "logs" / "zookeeper.out").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "USAGE: zookeeper-server-start [-daemon] zookeeper.properties"),
        (["nowhere.properties"], "cannot read the properties file nowhere.properties"),
        (["--override", "clientPort=2181"], "have no dataDir"),
    ],
)
def test_a_start_that_cannot_be_is_one_sentence(words: list[str], sentence: str) -> None:
    done = run("zookeeper", *words)
    assert done.code == 1
    assert sentence in done.err.splitlines()[0]


def test_a_shell_without_a_server_says_so() -> None:
    address = f"{HOST}:{free_port()}"
    done = run("zookeeper-shell", address, "ls", "/")
    assert done.code == 1
    assert f"No ZooKeeper at {address} can be reached" in done.err
