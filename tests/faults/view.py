"""How one broker sees the cluster, asked for with bytes packed by hand."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.wire import METADATA, RawConnection, Reader, string

VERSION = 7  # The first with leader epochs.


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    leader: int
    epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether somebody leads and every replica is in sync."""
        return self.leader >= 0 and set(self.isr) == set(self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    controller_id: int
    brokers: tuple[int, ...]
    partitions: dict[tuple[str, int], PartitionView]


def ask_view(
    host: str,
    port: int,
    topics: list[str] | None = None,
    timeout_s: float = 3,
    connect: Callable[..., RawConnection] = RawConnection,
) -> View:
    """The broker's view of these topics, or of all; OSError when it does not answer."""
    listed = struct.pack(">i", -1) if topics is None else struct.pack(">i", len(topics))
    body = listed + b"".join(string(topic) for topic in topics or ()) + b"\0"
    with connect(port, host=host, timeout_s=timeout_s) as connection:
        return _read(connection.ask(METADATA, VERSION, body))


def _read(answer: Reader) -> View:
    answer.number("i")  # Throttle time.
    brokers = [_read_broker(answer) for _ in range(answer.number("i"))]
    answer.text()  # Cluster id.
    controller_id = answer.number("i")
    partitions: dict[tuple[str, int], PartitionView] = {}
    for _ in range(answer.number("i")):
        answer.number("h")
        topic = answer.text()
        answer.number("b")
        for _ in range(answer.number("i")):
            index, view = _read_partition(answer)
            partitions[topic, index] = view
    return View(controller_id=controller_id, brokers=tuple(brokers), partitions=partitions)


def _read_broker(answer: Reader) -> int:
    broker_id = answer.number("i")
    answer.text()
    answer.number("i")
    answer.text()
    return broker_id


def _read_partition(answer: Reader) -> tuple[int, PartitionView]:
    answer.number("h")
    index, leader, epoch = answer.number("i"), answer.number("i"), answer.number("i")
    replicas, isr, _offline = (_read_ids(answer) for _ in range(3))
    return index, PartitionView(leader=leader, epoch=epoch, replicas=replicas, isr=isr)


def _read_ids(answer: Reader) -> tuple[int, ...]:
    return tuple(answer.number("i") for _ in range(answer.number("i")))
