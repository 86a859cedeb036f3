"""Several brokers of one machine: kill -9, SIGSTOP, restarts, transactions, growing."""

import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.support.broker import BrokerProcess
from tests.support.machine import MachineProcesses
from tests.support.platform import penstock
from tests.support.waiting import eventually


def refused(*words: str) -> str:
    """The sentence with which a command ends."""
    done = penstock(*words)
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def create(machine: MachineProcesses, topic: str, *, partitions: int = 6, copies: int = 3) -> None:
    admin = AdminClient({"bootstrap.servers": machine.bootstrap})
    wanted = NewTopic(topic, partitions, copies, config={"min.insync.replicas": "2"})
    (made,) = admin.create_topics([wanted], operation_timeout=60).values()
    made.result(120)


def in_sync(machine: MachineProcesses, topic: str) -> dict[int, set[int]]:
    admin = AdminClient({"bootstrap.servers": machine.bootstrap})
    found = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return {number: set(one.isrs) for number, one in found.items()}


def leaders(machine: MachineProcesses, topic: str) -> Counter[int]:
    admin = AdminClient({"bootstrap.servers": machine.bootstrap})
    found = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return Counter(one.leader for one in found.values())


def wait_for_all_in_sync(machine: MachineProcesses, topic: str) -> None:
    everybody = set(range(machine.count))
    eventually(
        lambda: all(isr == everybody for isr in in_sync(machine, topic).values()),
        timeout_s=180,
        every_s=0.5,
        what=f"all replicas of {topic} in sync",
    )


def read_all(machine: MachineProcesses, topic: str, *, partitions: int = 6) -> list[bytes]:
    """Every committed record of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": machine.bootstrap,
            "group.id": f"reader of {topic}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
        found: list[bytes] = []
        at_end: set[int] = set()

        def take() -> bool:
            record = consumer.poll(1.0)
            if record is None:
                return False
            error = record.error()
            if error is None:
                found.append(bytes(record.value() or b""))
            elif error.name() == "_PARTITION_EOF":
                at_end.add(record.partition() or 0)
            return len(at_end) == partitions

        eventually(take, timeout_s=180, every_s=0, what="the end of every partition")
        return found
    finally:
        consumer.close()


class Load:
    """An idempotent producer with acks=all that writes until told to stop."""

    def __init__(self, machine: MachineProcesses, topic: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": machine.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 300_000,
            }
        )
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged: list[bytes] = []
        self.failed: list[str] = []

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait_for(self, count: int) -> None:
        """Until so many more were acknowledged."""
        goal = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged) >= goal, timeout_s=180, what="acknowledgements")

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.002):
            value = b"%d" % number
            self._producer.produce(self._topic, value, key=value, on_delivery=self._note)
            self._producer.poll(0)
            number += 1
        assert self._producer.flush(300) == 0

    def _note(self, error: object, record: object) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.acknowledged.append(bytes(record.value()))  # type: ignore[attr-defined]


def judge(machine: MachineProcesses, topic: str, load: Load) -> None:
    """Nothing lost, nothing twice."""
    assert load.failed == []
    found = Counter(read_all(machine, topic))
    assert set(load.acknowledged) <= found.keys()
    assert [value for value, count in found.items() if count > 1] == []


def test_a_topic_has_three_copies_and_leaders_on_all_processes(machine: MachineProcesses) -> None:
    create(machine, "spread")
    said = penstock(
        "topics", "--describe", "--topic", "spread", "--bootstrap-server", machine.address
    ).stdout
    rows = [line for line in said.splitlines() if "Partition: " in line]
    assert len(rows) == 6
    for row in rows:
        isr = row.partition("Isr: ")[2].split()[0]
        assert sorted(isr.split(",")) == ["0", "1", "2"]
    assert leaders(machine, "spread") == {0: 2, 1: 2, 2: 2}


def test_a_kill_of_any_process_under_load_loses_and_doubles_nothing(
    machine: MachineProcesses,
) -> None:
    create(machine, "killed")
    with Load(machine, "killed") as load:
        for broker_id in range(3):  # One of them is the controller.
            load.wait_for(100)
            machine.kill_broker(broker_id)
            wait_for_all_in_sync(machine, "killed")
        load.wait_for(100)
    judge(machine, "killed", load)


def test_a_stopped_process_is_fenced_and_comes_back(machine: MachineProcesses) -> None:
    create(machine, "stopped")
    with Load(machine, "stopped") as load:
        load.wait_for(50)
        machine.signal_broker(1, signal.SIGSTOP)
        try:
            eventually(
                lambda: all(1 not in isr for isr in in_sync(machine, "stopped").values()),
                timeout_s=120,
                every_s=0.5,
                what="broker 1 out of every in-sync set",
            )
            load.wait_for(50)
        finally:
            machine.signal_broker(1, signal.SIGCONT)
        wait_for_all_in_sync(machine, "stopped")
        load.wait_for(50)
    judge(machine, "stopped", load)
    assert "the session is over" in machine.broker_log(1)


def test_a_transaction_reaches_all_processes_or_none(machine: MachineProcesses) -> None:
    create(machine, "together")
    producer = Producer({"bootstrap.servers": machine.bootstrap, "transactional.id": "everywhere"})
    eventually_init(producer)
    for is_kept in (True, False, True):
        producer.begin_transaction()
        for number in range(12):
            value = b"kept" if is_kept else b"dropped"
            producer.produce("together", value, partition=number % 6)
        if is_kept:
            producer.commit_transaction(120)
        else:
            producer.flush(120)
            producer.abort_transaction(120)
    assert Counter(read_all(machine, "together")) == {b"kept": 24}


def eventually_init(producer: Producer) -> None:
    """The first transaction makes the coordinators' topic, which may take some tries."""

    def init() -> bool:
        try:
            producer.init_transactions(30)
        except KafkaException as error:
            assert error.args[0].retriable(), error
            return False
        return True

    eventually(init, timeout_s=180, what="a coordinator")


def test_a_second_supervisor_is_told_who_runs(machine: MachineProcesses) -> None:
    said = refused("server", str(machine.file), "--processes", "3")
    assert "runs already" in said


def test_all_end_in_turn_and_begin_again_with_their_data_but_not_fewer(
    machine: MachineProcesses,
) -> None:
    create(machine, "again")
    with Load(machine, "again") as load:
        load.wait_for(50)
    assert machine.stop() == 0
    for broker_id in range(3):
        assert "shut down completed" in machine.broker_log(broker_id)[-400:]
    for words in (("--processes", "2"), ()):
        said = refused("server", str(machine.file), *words)
        assert "would leave out" in said and "--processes 3" in said
    machine.start()
    wait_for_all_in_sync(machine, "again")
    judge(machine, "again", load)


def test_a_broker_alone_becomes_three(tmp_path: Path) -> None:
    with MachineProcesses(tmp_path / "grown", 3) as machine:
        alone = BrokerProcess(
            tmp_path / "alone", {"log.dirs": str(machine.data)}, port=machine.port
        )
        with alone:
            alone.start()
            producer = Producer({"bootstrap.servers": alone.address})
            producer.produce("old", b"kept")
            assert producer.flush(120) == 0
            assert alone.stop() == 0
        machine.start()
        assert read_all(machine, "old", partitions=1) == [b"kept"]
        create(machine, "new")
        assert leaders(machine, "new") == {0: 2, 1: 2, 2: 2}
        assert machine.stop() == 0


@pytest.mark.parametrize("count", ["0", "three", "17"])
def test_a_count_that_cannot_be_is_one_sentence(count: str, tmp_path: Path) -> None:
    words = ("--override", f"log.dirs={tmp_path}", "--processes", count)
    said = refused("server", *words)
    assert f"processes is {count}: write a number from 1 to 16" in said
