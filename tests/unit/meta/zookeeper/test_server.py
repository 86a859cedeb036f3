"""The command line of ZooKeeper's server: what a classic properties file comes to."""

from pathlib import Path

import pytest

from penstock.config.properties import read_properties
from penstock.errors import ConfigError
from penstock.meta.zookeeper import server as zookeeper_server
from penstock.meta.zookeeper.server import MAIN_CLASS, find_jars, prepare


def test_a_classic_file_is_taken_as_it_stands(tmp_path: Path) -> None:
    settings = {
        "tickTime": "2000",
        "dataDir": str(tmp_path / "not" / "there yet"),
        "clientPort": "2181",
        "clientPortAddress": "0.0.0.0",
        "initLimit": "5",
        "syncLimit": "2",
        "autopurge.snapRetainCount": "3",
        "autopurge.purgeInterval": "0",
        "maxClientCnxns": "60",
    }
    launch = prepare(settings)
    assert read_properties(launch.file) == settings
    assert launch.data_dir.is_dir()
    assert launch.address == "0.0.0.0:2181"
    assert not launch.is_loopback_by_default
    assert launch.command[-2:] == (MAIN_CLASS, str(launch.file))


def test_a_server_listens_to_this_machine_alone_unless_told(tmp_path: Path) -> None:
    launch = prepare({"dataDir": str(tmp_path), "clientPort": "2181"})
    assert read_properties(launch.file)["clientPortAddress"] == "127.0.0.1"
    assert launch.is_loopback_by_default


def test_a_port_for_tls_gets_what_tls_needs_and_nobody_else_reads_its_passwords(
    tmp_path: Path,
) -> None:
    settings = {"dataDir": str(tmp_path), "secureClientPort": "2281", "ssl.keyStore.password": "p"}
    launch = prepare(settings)
    found = read_properties(launch.file)
    assert settings.items() <= found.items()
    assert found["serverCnxnFactory"].endswith(".NettyServerCnxnFactory")
    assert found["secureClientPortAddress"] == "127.0.0.1"
    assert launch.address == "127.0.0.1:2281"
    assert launch.is_loopback_by_default
    assert launch.file.stat().st_mode & 0o777 == 0o600
    own = prepare({**settings, "serverCnxnFactory": "org.example.Mine"})
    assert read_properties(own.file)["serverCnxnFactory"] == "org.example.Mine"


def test_a_port_named_per_server_is_left_alone(tmp_path: Path) -> None:
    settings = {"dataDir": str(tmp_path), "server.1": "h:2888:3888;2181"}
    launch = prepare(settings)
    assert read_properties(launch.file) == settings
    assert launch.address is None


def test_the_heap_is_small_and_requests_may_be_large(tmp_path: Path) -> None:
    command = prepare({"dataDir": str(tmp_path)}, heap="99m").command
    assert {"-Xmx99m", "-XX:+UseSerialGC", "-Djute.maxbuffer=8388608"} <= set(command)


@pytest.mark.parametrize("value", ["true", "false"])
def test_the_web_page_is_off_unless_the_settings_speak_of_it(tmp_path: Path, value: str) -> None:
    off = "-Dzookeeper.admin.enableServer=false"
    assert off in prepare({"dataDir": str(tmp_path)}).command
    settings = {"dataDir": str(tmp_path), "admin.enableServer": value}
    assert off not in prepare(settings).command


def test_the_number_of_a_server_is_written(tmp_path: Path) -> None:
    servers = {f"server.{n}": f"h{n}:2888:3888" for n in (1, 2, 3)}
    settings = {"dataDir": str(tmp_path), "clientPort": "2181", **servers}
    with pytest.raises(ConfigError, match=r"myid does not say which of them"):
        prepare(settings)
    with pytest.raises(ConfigError, match=r"--myid is 4, but the settings have no server\.4"):
        prepare(settings, my_id=4)
    prepare(settings, my_id=3)
    assert (tmp_path / "myid").read_text() == "3\n"
    prepare(settings)  # Now it is known.


def test_settings_without_a_directory_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"dataDir=/some/directory"):
        prepare({"clientPort": "2181"})


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=f"directory {tmp_path}/file/data cannot be made"):
        prepare({"dataDir": str(tmp_path / "file" / "data")})


def test_the_jars_are_those_of_pyspark() -> None:
    names = [jar.name.rstrip("0123456789.Final-").partition("-")[0] for jar in find_jars()]
    assert {"zookeeper", "slf4j", "log4j", "metrics", "snappy"} <= set(names)


def test_without_pyspark_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_server.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="pip install pyspark"):
        find_jars()
