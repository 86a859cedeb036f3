"""penstock cluster: its options, and the files of a cluster on one machine."""

import datetime
import re
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.processes import free_port

from penstock.cli.secure_files import SecureFiles, make_secure_files
from penstock.cli.tools.cluster import cluster
from penstock.cli.tools.cluster import files as cluster_files
from penstock.cli.tools.cluster import up as cluster_up
from penstock.config.properties import read_properties
from penstock.errors import CommandError


def prepared(directory: Path, **more: Any) -> cluster_files.ClusterFiles:
    return cluster_files.prepare(directory, **{"brokers": 3, "zookeepers": 1, **more})


def settings_of(files: cluster_files.ServerFiles) -> dict[str, str]:
    return dict(read_properties(files.properties))


def test_brokers_get_files_like_those_of_the_tutorials(tmp_path: Path) -> None:
    made = prepared(tmp_path)
    assert [b.properties.name for b in made.brokers] == [f"server-{n}.properties" for n in range(3)]
    assert len({b.port for b in made.brokers}) == 3
    for number, broker in enumerate(made.brokers):
        settings = settings_of(broker)
        assert settings["broker.id"] == str(number)
        assert settings["listeners"] == f"PLAINTEXT://127.0.0.1:{broker.port}"
        assert settings["log.dirs"] == str(tmp_path / "data" / f"kafka-{number}")
        assert settings["zookeeper.connect"] == f"127.0.0.1:{made.zookeepers[0].port}"
    assert settings_of(made.zookeepers[0])["dataDir"] == str(tmp_path / "data" / "zookeeper")


def test_a_cluster_keeps_its_ports_and_what_was_changed_by_hand(tmp_path: Path) -> None:
    before = prepared(tmp_path)
    with before.brokers[1].properties.open("a") as file:
        file.write("num.partitions=7\n")
    after = prepared(tmp_path)
    assert after == before
    assert settings_of(after.brokers[1])["num.partitions"] == "7"


def test_a_cluster_grows_by_a_broker(tmp_path: Path) -> None:
    before = prepared(tmp_path)
    after = prepared(tmp_path, brokers=4)
    assert after.brokers[:3] == before.brokers
    assert after.brokers[3].port > before.brokers[2].port
    assert settings_of(after.brokers[3])["broker.id"] == "3"


def test_given_ports_are_used_and_kept(tmp_path: Path) -> None:
    first = cluster_files.free_ports(free_port(), 3)[0]
    made = prepared(tmp_path, port=first)
    assert [broker.port for broker in made.brokers] == [first, first + 1, first + 2]
    with pytest.raises(CommandError, match=f"uses port {first}, not {first + 9}"):
        prepared(tmp_path, port=first + 9)


def test_taken_ports_are_passed_over() -> None:
    first = cluster_files.free_ports(free_port(), 3)[0]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", first + 1))
        listener.listen()
        found = cluster_files.free_ports(first, 2)
    assert found[0] >= first + 2
    assert found[1] == found[0] + 1


def test_an_ensemble_knows_its_members(tmp_path: Path) -> None:
    made = prepared(tmp_path, zookeepers=3)
    every = [settings_of(server) for server in made.zookeepers]
    members = {name: value for name, value in every[0].items() if name.startswith("server.")}
    assert len(members) == 3
    assert all(members.items() <= settings.items() for settings in every)
    assert made.connect.count(",") == 2
    with pytest.raises(CommandError, match="--zookeepers 3"):
        prepared(tmp_path, zookeepers=1)


def test_settings_for_all_brokers_are_written_once(tmp_path: Path) -> None:
    made = prepared(tmp_path, overrides={"min.insync.replicas": "2"})
    assert all(settings_of(b)["min.insync.replicas"] == "2" for b in made.brokers)
    prepared(tmp_path, overrides={"min.insync.replicas": "2"})
    with pytest.raises(CommandError, match=r"without min\.insync\.replicas=1"):
        prepared(tmp_path, overrides={"min.insync.replicas": "1"})


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["up", "--brokers", "0"], "at least one"),
        (["up", "--zookeepers", "2"], "write 1, 3 or 5"),
        (["up", "--check"], "--check is for `penstock cluster status`"),
        (["status", "--brokers", "3"], "--brokers is for `penstock cluster up`"),
        (["down"], "'down' is not one of up, status"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        cluster.main(words)
    assert end.value.code == 1
    assert complaint in capsys.readouterr().err


def lines_of_a_cluster(directory: Path) -> list[str]:
    """What `penstock cluster up` prints once everything runs."""
    files = prepared(directory)
    servers = [("ZooKeeper", files.zookeepers[0])]
    servers += [(f"broker {broker.number}", broker) for broker in files.brokers]
    started = [
        cluster_up.Running(name=name, files=server, process=SimpleNamespace(pid=19744 + at))  # type: ignore[arg-type]
        for at, (name, server) in enumerate(servers)
    ]
    return list(cluster_up.where_lines(files, started))


def test_directories_are_told_as_they_are_reached_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [line.split() for line in lines_of_a_cluster(Path(cluster._DIRECTORY))[:4]]
    told = [row[-3] for row in rows]
    assert all((tmp_path / path).parent.is_dir() for path in told)
    readme = (Path(__file__).resolve().parents[5] / "README.md").read_text()
    shown = re.findall(r"^(?:ZooKeeper|broker \d) +127\S+ +(\S+) +process \d+$", readme, re.M)
    assert told == shown
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    row = lines_of_a_cluster(tmp_path / "away")[0].split()
    assert row[-3] == str(tmp_path / "away" / "data" / "zookeeper")


@pytest.mark.parametrize("active", [True, False])
def test_the_commands_to_go_on_with_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, active: bool
) -> None:
    ours = tmp_path / ".venv" / "bin"
    ours.mkdir(parents=True)
    for name in ("python", "penstock", "kafka-topics"):
        (ours / name).touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", str(ours / "python"))
    monkeypatch.setenv("PATH", str(ours) if active else "/nowhere")
    commands = [line.split()[0] for line in lines_of_a_cluster(tmp_path) if line.startswith("  ")]
    prefix = "" if active else ".venv/bin/"
    assert commands == [f"{prefix}kafka-topics", f"{prefix}penstock"]


def secured(directory: Path) -> SecureFiles:
    return make_secure_files(
        directory,
        users=[],
        hosts=["127.0.0.1"],
        now=datetime.datetime.now(datetime.UTC),
        days=2,
        new_password=lambda: "a-password",
    )


def test_a_secured_cluster_has_no_port_for_plain_text(tmp_path: Path) -> None:
    keys = secured(tmp_path / "secure")
    made = prepared(tmp_path / "cluster", zookeepers=3, secure=keys)
    for broker in made.brokers:
        settings = settings_of(broker)
        assert settings["listeners"] == f"SASL_SSL://127.0.0.1:{broker.port}"
        assert read_properties(keys.broker_properties).items() <= settings.items()
        assert broker.properties.stat().st_mode & 0o777 == 0o600
    for server in made.zookeepers:
        settings = settings_of(server)
        assert "clientPort" not in settings
        assert settings["secureClientPort"] == str(server.port)
        assert settings["sslQuorum"] == "true"
    assert prepared(tmp_path / "cluster", zookeepers=3, secure=keys) == made
    alone = prepared(tmp_path / "alone", secure=keys)
    assert not [name for name in settings_of(alone.zookeepers[0]) if "uorum" in name]


def test_a_cluster_is_neither_secured_nor_opened_by_accident(tmp_path: Path) -> None:
    keys = secured(tmp_path / "secure")
    prepared(tmp_path / "closed", secure=keys)
    with pytest.raises(CommandError, match=f"--secure {keys.directory}"):
        prepared(tmp_path / "closed")
    prepared(tmp_path / "open")
    with pytest.raises(CommandError, match="is not secured"):
        prepared(tmp_path / "open", secure=keys)
    with pytest.raises(CommandError, match="penstock secure init"):
        prepared(tmp_path / "new", secure=SecureFiles(tmp_path / "nowhere"))
    assert not (tmp_path / "new").exists()
