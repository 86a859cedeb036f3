"""What the workloads need of a client library, and how records and partitions are written.

Each family has a module with two adapters, `Sender` and `Reader`, that give its own calls these
shapes and nothing more: no retries of ours, no hiding of errors. Whatever a library raises for a
cluster in trouble is in its module's `ERRORS`.
"""

import argparse
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

PADDING = b":" + b"." * 90
Place = tuple[str, int]  # Topic and partition.
Record = tuple[Place, int, int]  # Where, offset, value.
Done = Callable[[int | None, Exception | None], None]
OnAssign = Callable[[Mapping[Place, int | None]], None]
NEVER_SENT = "never sent"  # Begins the text of an error after which nothing can have been stored.


class Sender(Protocol):
    def start(self) -> None: ...
    def send(self, place: Place, value: int, done: Done) -> None: ...
    def pause(self, seconds: float) -> None: ...
    def flush(self, seconds: float) -> None: ...
    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def send_offsets(self, offsets: Mapping[Place, int], reader: "Reader") -> None: ...
    def close(self) -> None: ...


class Reader(Protocol):
    """`on_assign` gets what was assigned, and from where on it is read where that is known."""

    def start(self) -> None: ...
    def assign(self, starts: Mapping[Place, int]) -> None: ...
    def subscribe(self, topic: str, on_assign: OnAssign) -> None: ...
    def poll(self, seconds: float) -> Sequence[Record]: ...
    def seek(self, starts: Mapping[Place, int]) -> None: ...
    def commit(self, offsets: Mapping[Place, int]) -> None: ...
    def committed(self, places: Sequence[Place]) -> Mapping[Place, int]: ...
    def ends(self, places: Sequence[Place]) -> Mapping[Place, int]: ...
    def close(self) -> None: ...


class Family(Protocol):
    """A module of this shape is a family."""

    ERRORS: tuple[type[Exception], ...]

    def sender(self, options: argparse.Namespace, *, transactional_id: str | None) -> Sender: ...
    def reader(self, options: argparse.Namespace, *, group: str | None) -> Reader: ...

    def error_name(self, error: Exception) -> str | None:
        """Kafka's name of it. None: the library's errors tell too little to judge the broker by."""
        ...


def bounded(call: Callable[[], object], seconds: float = 25) -> None:
    """Wait for so long and no longer, for calls that libraries have been seen to hang in.

    kafka-python 3.0.12 forgets a transactional request whose coordinator cannot be reached at the
    moment of sending; librdkafka 2.16 may never send the TxnOffsetCommit that follows a repeated
    AddOffsetsToTxn. Both then wait for ever, with no request open at any broker.
    """
    outcome: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            outcome.append(error)
        else:
            outcome.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError(f"no end of {call} within {seconds:g} s")
    if outcome[0] is not None:
        raise outcome[0]


def payload(value: int) -> bytes:
    return b"%d" % value + PADDING


def number(data: bytes) -> int:
    return int(data.partition(b":")[0])


def name(place: Place) -> str:
    """As the broker names the partition's directory, and the checker the partition."""
    return f"{place[0]}-{place[1]}"


def named(offsets: Mapping[Place, int]) -> dict[str, int]:
    return {name(place): offset for place, offset in offsets.items()}
