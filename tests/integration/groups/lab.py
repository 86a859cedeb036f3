"""A broker, a topic and any number of member processes that come, work, go or die."""

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from tests.support.broker import BrokerProcess
from tests.support.processes import ROOT, python
from tests.support.waiting import eventually

# A member that waits for the processor must not pass for dead, or its records are read twice. Who
# is killed by a test has the short session, so that the others need not wait a minute for it.
SESSION_MS = 60_000
SHORT_SESSION_MS = 10_000
PATIENCE_S = 120  # How long a lab waits for what must happen; usually it takes a few seconds.
LIBRARIES = ("confluent", "kafka-python", "aiokafka")

_MODULE = "tests.integration.groups.member_process"


class Read(NamedTuple):
    """A record as a member saw it."""

    topic: str
    partition: int
    offset: int
    value: str


class Member:
    """One member process and what it has told."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.records: list[Read] = []
        self.batches: list[int] = []
        self.assignment: list[tuple[str, int]] = []
        self.assignment_count = 0
        self._process = subprocess.Popen(
            [python(), "-m", _MODULE, json.dumps(options)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            if "record" in told:
                self.records.append(Read(*told["record"]))
            elif "batch" in told:
                self.batches.append(told["batch"])
            else:
                self.assignment = [(topic, partition) for topic, partition in told["assigned"]]
                self.assignment_count += 1

    @property
    def values(self) -> list[str]:
        return [record.value for record in self.records]

    def kill(self) -> None:
        """kill -9: nobody is told."""
        self._process.kill()
        self._process.wait()
        self._reader.join(120)
        self.assignment = []

    def stop(self) -> None:
        """SIGTERM: the member leaves in good order."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(120) == 0
        self._reader.join(120)
        self.assignment = []

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None


class Lab:
    """Everything one experiment needs; whatever still runs at its end is killed."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.broker = broker
        self.members: list[Member] = []
        self._admin = AdminClient({"bootstrap.servers": broker.address})
        self._producer = Producer({"bootstrap.servers": broker.address})

    def create(self, topic: str, partitions: int) -> None:
        for made in self._admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            made.result()

    def grow(self, topic: str, partitions: int) -> None:
        for grown in self._admin.create_partitions([NewPartitions(topic, partitions)]).values():
            grown.result()

    def member(
        self,
        group: str,
        *topics: str,
        library: str = "confluent",
        records_max: int = 100,
        work_ms: int = 0,
        strategy: str | None = None,
        session_ms: int = SESSION_MS,
        **settings: Any,
    ) -> Member:
        """A new process in the group; settings are the library's own."""
        member = Member(
            {
                "library": library,
                "bootstrap": self.broker.address,
                "group": group,
                "topics": topics,
                "session_ms": session_ms,
                "records_max": records_max,
                "work_ms": work_ms,
                "settings": settings,
                **({} if strategy is None else {"strategy": strategy}),
            }
        )
        self.members.append(member)
        return member

    def send(self, topic: str, values: list[str], partitions: int) -> None:
        """Spread the values over the partitions in turn."""
        for at, value in enumerate(values):
            self._producer.produce(topic, value.encode(), partition=at % partitions)
        assert self._producer.flush(120) == 0

    def group_state(self, group: str) -> str:
        described = self._admin.describe_consumer_groups([group])[group].result()
        return str(described.state.name)

    def close(self) -> None:
        for member in self.members:
            if member.is_running:
                member.kill()


def shared(
    members: list[Member], partitions: set[tuple[str, int]], shares: Sequence[int] = ()
) -> None:
    """Wait until the members own each partition exactly once, and have shares of these sizes."""

    def is_shared() -> bool:
        owned = Counter(partition for member in members for partition in member.assignment)
        assert owned == Counter(partitions), [member.assignment for member in members]
        sizes = sorted(len(member.assignment) for member in members)
        assert not shares or sizes == sorted(shares), sizes
        return True

    eventually(is_shared, timeout_s=PATIENCE_S, what="a shared assignment")


def partitions_of(topic: str, count: int) -> set[tuple[str, int]]:
    return {(topic, partition) for partition in range(count)}


def read_by(members: list[Member], values: list[str]) -> Counter[str]:
    """Wait until the members together have read all the values; how often each was read."""

    def is_read() -> Counter[str]:
        seen = Counter(value for member in members for value in member.values)
        missing = set(values) - set(seen)
        assert not missing, f"{len(missing)} values are missing, such as {sorted(missing)[:3]}"
        return seen

    return eventually(is_read, timeout_s=PATIENCE_S, what="all values")
