"""The commands that start a master and a worker."""

import socket
from pathlib import Path

import pytest
from tests.support.processes import free_port

from penstock.errors import CommandError, ConfigError
from penstock.spark.start import standalone


def test_master_and_worker_are_on_the_loopback_address_unless_told(tmp_path: Path) -> None:
    master = standalone.master(port=free_port())
    worker = standalone.worker("spark://127.0.0.1:7077", work_dir=tmp_path, cores=2, memory="1g")
    for launch in (master, worker):
        assert Path(launch.command[0]).is_file()
        assert launch.command[launch.command.index("--host") + 1] == "127.0.0.1"
        assert launch.environment["SPARK_LOCAL_IP"] == "127.0.0.1"
        assert Path(launch.environment["JAVA_HOME"], "bin", "java").exists()
    assert worker.command[-5:] == ("--cores", "2", "--memory", "1g", "spark://127.0.0.1:7077")


def test_a_taken_port_is_told_since_spark_would_silently_use_the_next() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CommandError, match="cannot listen on"):
            standalone.master(port=taken.getsockname()[1])


@pytest.mark.parametrize("url", ["127.0.0.1:7077", "spark://", "spark://host", "http://host:1"])
def test_what_is_no_url_of_a_master_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="spark://host:port"):
        standalone.worker(url, work_dir=tmp_path)


def test_a_size_of_memory_needs_its_unit(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="512m or 4g"):
        standalone.worker("spark://h:1", work_dir=tmp_path, memory="lots")


@pytest.mark.parametrize("master", ["spark://127.0.0.1:7077", "local[2]", "local"])
def test_a_driver_whose_workers_are_here_listens_here_alone(master: str) -> None:
    assert standalone.driver_conf(master)["spark.driver.bindAddress"] == "127.0.0.1"


def test_a_driver_of_a_cluster_is_reached_by_its_name() -> None:
    assert standalone.driver_conf("spark://cluster:7077") == {}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["worker"], "A worker needs the URL of its master"),
        (["master", "spark://h:1"], "A master takes no URL"),
        (["master", "--cores", "2"], "--cores is for workers"),
        (["worker", "spark://h:1", "--port", "1"], "--port is for the master"),
        (["worker", "h:1"], "not the URL of a master"),
        (["slave"], "'slave' is not one of master, worker"),
    ],
)
def test_a_wrong_command_line_is_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from penstock.cli.main import main

    try:
        code: object = main(["spark", *words])
    except SystemExit as ended:
        code = ended.code
    assert code == 1
    assert sentence in capsys.readouterr().err
