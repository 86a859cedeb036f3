"""Writers that remember what was promised to them, for tests that pull the plug.

A writer numbers its records 0, 1, 2, ... and notes the offset of each one that was acknowledged.
After a crash the log is read back whole and compared with the notes.
"""

import struct
import threading
from collections import deque

from tests.support.batches import batch, stored_batches, values
from tests.support.wire import (
    PRODUCE,
    RawConnection,
    Reader,
    WireError,
    produce_body,
    read_produce,
    request,
)

VERSION = 7


class Writer:
    """Writes numbered records into one partition with a few requests in flight.

    Without a producer id nothing is sent twice, so a record is stored at most once by itself. With
    one, whatever was not acknowledged before a crash is sent again, and the broker must notice.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        *,
        acks: int = 1,
        producer: tuple[int, int] | None = None,
        in_flight: int = 5,
        records_per_batch: int = 3,
        padding_bytes: int = 200,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.acks = acks
        self.producer = producer
        self.in_flight = in_flight
        self.records_per_batch = records_per_batch
        self.padding = b"." * padding_bytes
        self.acked: dict[int, int] = {}  # Offset by number.
        self.next_number = 0
        self.unanswered: deque[int] = deque()  # First numbers of batches, oldest first.
        self.error_codes: list[int] = []
        self.stopping = threading.Event()

    def value(self, number: int) -> bytes:
        """The record with this number."""
        return b"%d:%d:" % (self.partition, number) + self.padding

    def frame(self, first: int) -> bytes:
        """The request with the batch that begins with this number."""
        numbers = range(first, first + self.records_per_batch)
        body = batch(
            [self.value(number) for number in numbers],
            producer=self.producer or (-1, -1),
            sequence=first if self.producer else -1,
        )
        payload = produce_body({(self.topic, self.partition): body}, acks=self.acks)
        return request(PRODUCE, VERSION, payload)

    def run(self, port: int) -> None:
        """Write until told to stop or until the connection breaks."""
        try:
            with RawConnection(port) as connection:
                self.send_again(connection)
                while not self.stopping.is_set():
                    self.send(connection)
                while self.unanswered:
                    self.take_answer(connection)
        except OSError:
            if self.producer is None:  # What became of these is unknown, and stays so.
                self.unanswered.clear()

    def send_again(self, connection: RawConnection) -> None:
        """Send what was never acknowledged, in the old order."""
        for first in self.unanswered:
            connection.send(self.frame(first))

    def send(self, connection: RawConnection) -> None:
        """Send the next batch, after making room for it."""
        while len(self.unanswered) >= self.in_flight:
            self.take_answer(connection)
        connection.send(self.frame(self.next_number))
        self.unanswered.append(self.next_number)
        self.next_number += self.records_per_batch

    def take_answer(self, connection: RawConnection) -> None:
        """Note what the oldest request got."""
        reader = Reader(connection.read_frame())
        reader.number("i")
        (answer,) = read_produce(reader, VERSION).values()
        first = self.unanswered.popleft()
        if answer.error_code:
            self.error_codes.append(answer.error_code)
            raise WireError(f"Produce answered error {answer.error_code}")
        for number in range(first, first + self.records_per_batch):
            self.acked[number] = answer.base_offset + number - first


def read_log(port: int, topic: str, partition: int) -> list[tuple[int, bytes]]:
    """Every record of a partition: its offset and value, with all checksums right."""
    found: list[tuple[int, bytes]] = []
    with RawConnection(port) as connection:
        end = connection.offset(topic, partition=partition)
        offset = 0
        while offset < end:
            answer = connection.fetch(topic, offset, partition=partition)
            assert answer.error_code == 0
            for stored in stored_batches(answer.records):
                assert stored.crc_is_right, f"a wrong checksum at offset {stored.base_offset}"
                found += [(at, value) for at, value in values(stored) if at >= offset]
                offset = stored.last_offset + 1
    return found


def number_of(value: bytes) -> int:
    """The number a writer gave the record."""
    return int(value.split(b":")[1])


def broken_batch_length(data: bytes, length: int) -> bytes:
    """The batch with another length in its header."""
    return data[:8] + struct.pack(">i", length) + data[12:]
