"""The process from outside: how it starts, refuses to start, and stops."""

import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from tests.support.batches import batch
from tests.support.broker import BrokerProcess, server_command
from tests.support.fixtures import StartBroker
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually
from tests.support.wire import FETCH, RawConnection, WireError, fetch_body, request
from tests.support.writers import Writer, read_log

TOPIC = "kept"


def start_and_fail(settings: dict[str, str]) -> str:
    """What a broker prints that must not start; its exit code is 1."""
    command = server_command(settings)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


def some_settings(tmp_path: Path, **more: str) -> dict[str, str]:
    listeners = f"PLAINTEXT://{HOST}:{free_port()}"
    return {"listeners": listeners, "log.dirs": str(tmp_path / "data"), **more}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.partitions", "none"),
        ("num.partitions", "0"),
        ("log.cleanup.policy", "shred"),
        ("listeners", "PLAINTEXT:/nowhere"),
        ("log.retention.ms", "a week"),
        ("compression.type", "rar"),
        ("log.segment.bytes", "-5"),
        # Of these the value is well formed, but what it asks for would silently not be done.
        ("authorizer.class.name", "org.example.Authorizer"),
        ("create.topic.policy.class.name", "org.example.Policy"),
        ("alter.config.policy.class.name", "org.example.Policy"),
        ("client.quota.callback.class", "org.example.Quotas"),
    ],
)
def test_a_bad_value_is_a_sentence_that_names_the_setting(
    tmp_path: Path, name: str, value: str
) -> None:
    said = start_and_fail({**some_settings(tmp_path), name: value})
    assert name in said
    assert value in said


@pytest.mark.parametrize("name", ["zookeeper.ssl.crl.enable", "zookeeper.set.acl"])
def test_protection_of_zookeeper_that_is_not_given_is_refused(tmp_path: Path, name: str) -> None:
    settings = {"zookeeper.connect": f"{HOST}:{free_port()}", name: "true"}
    settings["zookeeper.ssl.client.enable"] = "true"
    said = start_and_fail({**some_settings(tmp_path), **settings})
    assert f"{name} is true" in said


def test_an_unknown_setting_is_a_warning(start_broker: StartBroker) -> None:
    broker = start_broker({"no.such.setting": "1"})
    assert "no.such.setting" in broker.log
    assert "WARN" in broker.log


def test_all_settings_are_printed_at_the_start(broker: BrokerProcess) -> None:
    assert "KafkaConfig values:" in broker.log
    for line in ("broker.id = 0", "num.partitions = 1", "log.segment.bytes = 1073741824"):
        assert f"\t{line}" in broker.log


def test_settings_come_from_a_properties_file(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "b")
    file = tmp_path / "server.properties"
    listeners = f"listeners=PLAINTEXT://{HOST}:{broker.port}"
    file.write_text(f"# a comment\n{listeners}\nlog.dirs={broker.data}\nnum.partitions=4\n")
    with broker:
        command = server_command({})
        broker.launch = lambda: None  # type: ignore[method-assign]
        broker.process = subprocess.Popen(
            [*command, str(file)],
            stdout=broker.log_path.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        broker.wait_until_ready()
        assert "num.partitions = 4" in broker.log
        assert broker.stop() == 0


def test_a_directory_in_use_is_refused_with_its_name(broker: BrokerProcess) -> None:
    settings = {"listeners": f"PLAINTEXT://{HOST}:{free_port()}", "log.dirs": str(broker.data)}
    assert str(broker.data) in start_and_fail(settings)
    assert broker.answers()


def test_a_port_in_use_is_refused_with_its_number(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        listeners = f"PLAINTEXT://{HOST}:{port}"
        assert str(port) in start_and_fail(some_settings(tmp_path, listeners=listeners))


def test_a_data_directory_of_another_broker_is_refused(start_broker: StartBroker) -> None:
    broker = start_broker()
    broker.stop()
    settings = {"listeners": f"PLAINTEXT://{HOST}:{broker.port}", "log.dirs": str(broker.data)}
    said = start_and_fail({**settings, "broker.id": "9"})
    assert "broker 0" in said and "9" in said


def test_a_stop_keeps_everything_and_marks_it_clean(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC, partitions=2) == 0
    writer = Writer(TOPIC, 1)
    thread = threading.Thread(target=writer.run, args=(broker.port,))
    thread.start()
    eventually(lambda: len(writer.acked) > 200)
    assert broker.stop() == 0
    thread.join(120)
    assert (broker.data / ".kafka_cleanshutdown").exists()

    before = read_after_start(broker, writer)
    assert not (broker.data / ".kafka_cleanshutdown").exists()
    broker.restart()
    assert read_log(broker.port, TOPIC, 1) == before


def read_after_start(broker: BrokerProcess, writer: Writer) -> list[tuple[int, bytes]]:
    broker.start()
    found = read_log(broker.port, TOPIC, 1)
    promised = {offset: writer.value(number) for number, offset in writer.acked.items()}
    assert promised.items() <= dict(found).items()
    return found


def test_a_stop_does_not_wait_for_long_polls(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC) == 0
        poll = fetch_body({(TOPIC, 0): 0}, wait_ms=600_000)
        connection.send(request(FETCH, 11, poll))
        with RawConnection(broker.port) as other:
            other.api_versions()  # What came before this was heard before it was answered.
        assert broker.stop() == 0
        # A poll that the stop had waited for in vain would have been cut off without an answer.
        assert connection.read_frame()


def test_a_second_signal_ends_it_at_once(broker: BrokerProcess) -> None:
    with RawConnection(broker.port):
        broker.send_signal(signal.SIGTERM)
        broker.send_signal(signal.SIGTERM)
        assert broker.wait() in (0, -signal.SIGTERM)


def test_an_interrupt_from_the_keyboard_stops_it_in_good_order(broker: BrokerProcess) -> None:
    broker.send_signal(signal.SIGINT)
    assert broker.wait(timeout_s=120) == 0
    assert (broker.data / ".kafka_cleanshutdown").exists()


def test_topics_ids_and_settings_outlive_the_process(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection:
        configs = {"retention.ms": "123456789"}
        assert connection.create_topic(TOPIC, partitions=3, configs=configs) == 0
        connection.produce_one(TOPIC, batch([b"one"]), partition=2)
        metadata = broker.partition_dir(TOPIC, 2) / "partition.metadata"
        written = metadata.read_text()
    broker.restart()
    with RawConnection(broker.port) as connection:
        assert connection.leaders(TOPIC) == {0: 0, 1: 0, 2: 0}
        assert connection.create_topic(TOPIC) == 36  # TOPIC_ALREADY_EXISTS
        assert connection.offset(TOPIC, partition=2) == 1
    assert metadata.read_text() == written


def test_several_directories_share_the_partitions(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    with BrokerProcess(tmp_path / "b", {"log.dirs": f"{first},{second}"}) as broker:
        broker.start()
        with RawConnection(broker.port) as connection:
            assert connection.create_topic(TOPIC, partitions=4) == 0
            eventually(lambda: connection.leaders(TOPIC) == dict.fromkeys(range(4), 0))
            for partition in range(4):
                connection.produce_one(TOPIC, batch([b"x"]), partition=partition)
        for directory in (first, second):
            assert len(list(directory.glob(f"{TOPIC}-*"))) == 2
        broker.restart()
        for partition in range(4):
            assert len(read_log(broker.port, TOPIC, partition)) == 1


def test_a_deleted_topic_leaves_the_disk(start_broker: StartBroker) -> None:
    broker = start_broker({"log.segment.delete.delay.ms": "100"})
    with RawConnection(broker.port) as connection:
        assert connection.create_topic(TOPIC) == 0
        connection.produce_one(TOPIC, batch([b"x"]))
        assert connection.delete_topic(TOPIC) == 0
        eventually(
            lambda: not list(broker.data.glob(f"{TOPIC}*")), timeout_s=120, what="an empty disk"
        )
        assert connection.create_topic(TOPIC) == 0
        assert connection.offset(TOPIC) == 0


def test_retention_by_size_frees_the_disk_while_running(start_broker: StartBroker) -> None:
    often = {"log.retention.check.interval.ms": "200", "log.segment.delete.delay.ms": "100"}
    broker = start_broker({**often, "log.initial.task.delay.ms": "100"})
    with RawConnection(broker.port) as connection:
        configs = {"segment.bytes": "1048576", "retention.bytes": "2097152"}
        assert connection.create_topic(TOPIC, configs=configs) == 0
        for _ in range(40):
            connection.produce_one(TOPIC, batch([bytes(200_000)]))
        eventually(lambda: connection.offset(TOPIC, timestamp=-2) > 0, timeout_s=120)
        assert connection.fetch(TOPIC, 0).error_code == 1  # OFFSET_OUT_OF_RANGE

        def begins_anew() -> bool:
            # Between the two questions the next round may take more away.
            return connection.fetch(TOPIC, connection.offset(TOPIC, timestamp=-2)).error_code == 0

        eventually(begins_anew)

    def disk_bytes() -> int:
        paths = broker.partition_dir(TOPIC).glob("*.log*")
        return sum(path.stat().st_size for path in paths)

    eventually(lambda: disk_bytes() < 5_000_000, timeout_s=120, what="a small log")


def test_a_client_that_was_refused_says_what_it_got(broker: BrokerProcess) -> None:
    with RawConnection(broker.port) as connection, pytest.raises(WireError, match="error 3"):
        connection.produce_one("never-made-because-raw-produce-creates-nothing", batch([b"x"]))
