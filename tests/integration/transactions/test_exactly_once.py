"""Consume, transform, produce, under kill -9 of clients and broker: the output is exact.

Two processes of one group carry records from a topic to another in transactions, while more come
in. At random moments one of them, or the broker, is killed and started anew. In the end every
input stands in the output once, in its order.
"""

import os
import random
import subprocess
import threading
from collections import defaultdict
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from tests.integration.transactions.pipeline_process import INPUT, OUTPUT, transform
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.processes import ROOT, python
from tests.support.waiting import eventually
from tests.support.wire import RawConnection

ROUNDS = 50 if os.environ.get("PENSTOCK_LONG") == "1" else 5
PARTITIONS = 3
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "internal.segment.bytes": "200000",
}


class Worker:
    """A pipeline process that is started again whenever it is gone."""

    def __init__(self, address: str, name: str, directory: Path) -> None:
        module = "tests.integration.transactions.pipeline_process"
        self._command = [python(), "-m", module, address, name]
        self._directory = directory
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    def ensure(self) -> None:
        """Start it unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        self._starts += 1
        said = self._directory / f"{self._name}-{self._starts}.out"
        with said.open("wb") as out, said.with_suffix(".err").open("wb") as err:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=err, cwd=ROOT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def committed(self) -> int:
        """How many records its transactions carried over, as far as it could tell."""
        found = [path.read_text().split() for path in self._directory.glob(f"{self._name}-*.out")]
        return sum(int(word) for words in found for word in words)


class Feeder:
    """Writes numbers into the input, retrying through every restart of the broker."""

    def __init__(self, address: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 300,
                "message.timeout.ms": 120_000,
                "log_level": 0,
            }
        )
        self.sent: dict[int, list[bytes]] = defaultdict(list)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _feed(self) -> None:
        number = 0
        while not self._stopping.wait(0.002):
            partition = number % PARTITIONS
            value = str(number).encode()
            self.sent[partition].append(value)
            self._producer.produce(INPUT, value, partition=partition)
            self._producer.poll(0)
            number += 1

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        assert self._producer.flush(120) == 0


def read_output(address: str) -> dict[int, list[bytes]]:
    """Everything that readers of committed records see, to the end of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(OUTPUT, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    found: dict[int, list[bytes]] = defaultdict(list)
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(120)
        assert message is not None, "the output cannot be read to its end"
        if message.error() is None:
            found[message.partition()].append(message.value())
        else:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ended.add(message.partition())
    consumer.close()
    return found


def disturb(broker: BrokerProcess, workers: list[Worker], chance: random.Random) -> None:
    """One round: let some work be done, then kill somebody, anywhere in the middle of it."""
    before = sum(worker.committed for worker in workers)
    wanted = before + chance.randrange(1, 200)

    def has_moved() -> bool:
        for worker in workers:
            worker.ensure()
        return sum(worker.committed for worker in workers) >= wanted

    eventually(has_moved, timeout_s=240, every_s=0.01 + chance.random() / 50)
    victim = chance.choice([*workers, broker, None])
    if victim is None:
        for worker in workers:
            worker.kill()
        broker.kill()
    else:
        victim.kill()
    if victim is None or victim is broker:
        broker.start()


@pytest.mark.timeout(1800)
def test_every_input_is_in_the_output_exactly_once(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    broker = start_broker(SETTINGS)
    with RawConnection(broker.port) as connection:
        for topic in (INPUT, OUTPUT):
            assert connection.create_topic(topic, partitions=PARTITIONS) == 0
    seed = random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    workers = [Worker(broker.address, f"worker-{n}", tmp_path) for n in range(2)]
    try:
        with Feeder(broker.address) as feeder:
            for _ in range(ROUNDS):
                disturb(broker, workers, chance)
        wanted = {p: [transform(value) for value in feeder.sent[p]] for p in range(PARTITIONS)}
        total = sum(len(values) for values in wanted.values())

        def is_all_there() -> bool:
            for worker in workers:
                worker.ensure()
            return sum(map(len, read_output(broker.address).values())) >= total

        eventually(is_all_there, timeout_s=300, every_s=0.5)
    finally:
        for worker in workers:
            worker.kill()
    assert read_output(broker.address) == wanted, f"seed {seed}"
    assert broker.tracebacks() == {}
