"""The settings of several brokers, made of the settings of one."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.platform.brokers import broker_row, checked_count, count_for, port_step

GIB = 1 << 30


def given_in(directory: Path, **more: str) -> dict[str, str]:
    return {"listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": str(directory), **more}


def test_ids_ports_and_directories_go_up_in_a_row(tmp_path: Path) -> None:
    row = [BrokerConfig(one) for one in broker_row(given_in(tmp_path), 3)]
    assert [one.broker_id for one in row] == [0, 1, 2]
    assert [one.listeners[0].port for one in row] == [9092, 9093, 9094]
    below = tmp_path / "penstock-processes"
    assert [one.log_dirs for one in row] == [(tmp_path,), (below / "1",), (below / "2",)]
    assert {one.penstock_shared_metadata for one in row} == {str(tmp_path / "penstock-metadata.db")}
    assert all(one.is_in_cluster for one in row)


@pytest.mark.parametrize(("count", "copies", "min_isr"), [(2, 2, 1), (3, 3, 2), (5, 3, 2)])
def test_internal_topics_get_as_many_copies_as_there_are_brokers(
    tmp_path: Path, count: int, copies: int, min_isr: int
) -> None:
    config = BrokerConfig(broker_row(given_in(tmp_path), count)[-1])
    assert config.offsets_topic_replication_factor == copies
    assert config.transaction_state_log_replication_factor == copies
    assert config.transaction_state_log_min_isr == min_isr


def test_what_somebody_set_is_kept(tmp_path: Path) -> None:
    given = given_in(tmp_path, **{"offsets.topic.replication.factor": "1", "broker.id": "5"})
    row = broker_row(given, 2)
    assert [one["broker.id"] for one in row] == ["5", "6"]
    assert {one["offsets.topic.replication.factor"] for one in row} == {"1"}


def test_one_process_is_told_what_was_given(tmp_path: Path) -> None:
    assert broker_row(given_in(tmp_path), 1) == (given_in(tmp_path),)


def test_every_listener_moves_and_none_meets_another(tmp_path: Path) -> None:
    given = given_in(
        tmp_path,
        **{
            "listeners": "PLAINTEXT://127.0.0.1:9092,OTHER://127.0.0.1:9093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://broker:9092,OTHER://broker:9093",
            "metrics.listeners": "http://127.0.0.1:9404",
        },
    )
    second = broker_row(given, 2)[1]
    assert second["listeners"] == "PLAINTEXT://127.0.0.1:9094,OTHER://127.0.0.1:9095"
    assert second["advertised.listeners"] == "PLAINTEXT://broker:9094,OTHER://broker:9095"
    assert second["metrics.listeners"] == "http://127.0.0.1:9406"


@given(st.sets(st.integers(1, 60_000), min_size=1, max_size=4), st.integers(1, 16))
def test_no_two_processes_get_the_same_port(ports: set[int], count: int) -> None:
    step = port_step(ports, count)
    assert len({port + step * number for port in ports for number in range(count)}) == (
        len(ports) * count
    )


def test_several_processes_do_without_zookeeper(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect is set"):
        broker_row(given_in(tmp_path, **{"zookeeper.connect": "localhost:2181"}), 2)


def test_a_row_of_ports_must_begin_somewhere(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="any free port"):
        broker_row({**given_in(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"}, 2)
    with pytest.raises(ConfigError, match="no ports for 3 processes"):
        broker_row({**given_in(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:65534"}, 3)


def test_a_broker_alone_keeps_its_id_when_others_join(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=7\n")
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert [one["broker.id"] for one in broker_row(given_in(tmp_path), 2)] == ["7", "8"]


def test_a_broker_alone_that_crashed_is_to_recover_first(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nbroker.id=0\n")
    with pytest.raises(ConfigError, match="start it once without --processes and stop it"):
        broker_row(given_in(tmp_path), 2)
    (tmp_path / "penstock-processes").mkdir()  # It has been several since.
    assert len(broker_row(given_in(tmp_path), 2)) == 2


@pytest.mark.parametrize("count", [1, 2])
def test_a_process_with_partitions_is_not_left_out(tmp_path: Path, count: int) -> None:
    (tmp_path / "penstock-processes" / "2" / "orders-0").mkdir(parents=True)
    with pytest.raises(ConfigError, match="would leave out: start with --processes 3"):
        broker_row(given_in(tmp_path), count)
    assert len(broker_row(given_in(tmp_path), 3)) == 3


@pytest.mark.parametrize(
    ("cores", "memory_bytes", "count"),
    [(1, 64 * GIB, 1), (3, 64 * GIB, 1), (4, 16 * GIB, 2), (16, 64 * GIB, 8), (64, 512 * GIB, 8),
     (16, 8 * GIB, 4), (16, GIB, 1), (8, 0, 1)],
)  # fmt: skip
def test_a_new_directory_gets_half_of_the_cores(
    tmp_path: Path, cores: int, memory_bytes: int, count: int
) -> None:
    assert count_for(cores, memory_bytes, [tmp_path]) == count


def test_a_used_directory_keeps_its_count(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").touch()
    assert count_for(16, 64 * GIB, [tmp_path]) == 1
    (tmp_path / "penstock-processes" / "2").mkdir(parents=True)
    assert count_for(1, GIB, [tmp_path]) == 3


@pytest.mark.parametrize("text", ["0", "-1", "17", "many", "", "1.5"])
def test_a_count_is_a_number_from_1_to_16(text: str) -> None:
    with pytest.raises(ConfigError, match="write a number from 1 to 16"):
        checked_count(text)
    assert checked_count("16") == 16
