"""What a client does all day: send, read alone, read in a group, transact, or pipe.

Each role runs until it is told to stop, goes on after errors as a patient application would, and
writes down every step before and after it is taken.
"""

import argparse
import random
import threading
import time
from collections.abc import Mapping, Sequence

from tests.faults.clients.family import (
    NEVER_SENT,
    Family,
    Place,
    Reader,
    Record,
    Sender,
    name,
    named,
)
from tests.faults.clients.recorder import Recorder

IN_FLIGHT_MAX = 300
LOOK_EVERY_S = 0.3
RETRY_S = 0.2
FLUSH_S = 30.0


class Role:
    """What all roles share."""

    def __init__(
        self,
        family: Family,
        options: argparse.Namespace,
        recorder: Recorder,
        stopping: threading.Event,
    ) -> None:
        self.family = family
        self.options = options
        self.recorder = recorder
        self.stopping = stopping
        self.chance = random.Random(f"{options.seed}/{options.process}")
        self.places = [(options.topic, partition) for partition in range(options.partitions)]
        self.restarts = 0

    def note(self, what: str, error: BaseException) -> None:
        """Errors are no news in such a run, but the client's output tells them all."""
        at_s = time.monotonic_ns() / 1e9
        print(f"{at_s:.3f} {what}: {type(error).__name__}: {error}", flush=True)

    def trouble(self, during: str, error: Exception) -> None:
        """An error in a transaction, which the checker judges if the family can name it."""
        self.note(during, error)
        named_error = self.family.error_name(error)
        if named_error is not None:
            self.recorder.look(
                "trouble",
                time.monotonic_ns(),
                during=during,
                error=named_error,
                text=str(error),
            )

    def started_sender(self, transactional_id: str | None) -> Sender | None:
        """A sender that has reached the cluster; None when it is time to stop before that."""
        while not self.stopping.is_set():
            sender = self.family.sender(self.options, transactional_id=transactional_id)
            try:
                sender.start()
            except self.family.ERRORS as error:
                self.note("start", error)
                self.closed(sender)
                self.stopping.wait(RETRY_S)
            else:
                self.restarts += 1
                return sender
        return None

    def started_reader(self, group: str | None) -> Reader | None:
        """A reader that has reached the cluster; None when it is time to stop before that."""
        while not self.stopping.is_set():
            reader = self.family.reader(self.options, group=group)
            try:
                reader.start()
            except self.family.ERRORS as error:
                self.note("start", error)
                self.closed(reader)
                self.stopping.wait(RETRY_S)
            else:
                self.restarts += 1
                return reader
        return None

    def closed(self, client: Sender | Reader) -> None:
        try:
            client.close()
        except self.family.ERRORS as error:
            self.note("close", error)


class Send(Role):
    """Unique values, round the partitions, as fast as the given rate."""

    def run(self) -> None:
        self.in_flight = 0
        self.is_broken = threading.Event()
        self.lock = threading.Lock()
        value = self.options.base
        while not self.stopping.is_set():
            sender = self.started_sender(None)
            if sender is None:
                return
            self.is_broken.clear()
            value = self.send_all(sender, value)
            try:
                sender.flush(FLUSH_S)
            except self.family.ERRORS as error:
                self.note("flush", error)
            self.closed(sender)

    def send_all(self, sender: Sender, value: int) -> int:
        """Send until told to stop, or until this producer is beyond use."""
        producer = f"{self.options.process}/{self.restarts}"
        started_s, first = time.monotonic(), value
        while not (self.stopping.is_set() or self.is_broken.is_set()):
            ahead_s = (value - first) / self.options.rate - (time.monotonic() - started_s)
            if ahead_s > 0 or self.in_flight >= IN_FLIGHT_MAX:
                sender.pause(min(max(ahead_s, 0.01), 0.1))
                continue
            value += 1
            self.send_one(sender, producer, value)
        return value

    def send_one(self, sender: Sender, producer: str, value: int) -> None:
        place = self.places[value % len(self.places)]
        op = self.recorder.invoke(
            "send",
            producer=producer,
            partition=name(place),
            value=value,
            acks=self.options.acks,
            is_idempotent=self.options.is_idempotent,
        )

        def done(offset: int | None, error: Exception | None) -> None:
            with self.lock:
                self.in_flight -= 1
            if error is None:
                self.recorder.ok(op, offset=offset)
            elif str(error).startswith(NEVER_SENT):
                self.recorder.fail(op, error=str(error))
            else:
                self.note(f"send {value}", error)
                self.recorder.info(op, error=str(error))
                if self.options.is_idempotent:
                    self.is_broken.set()  # A gap in the sequence; a careful application stops here.

        with self.lock:
            self.in_flight += 1
        try:
            sender.send(place, value, done)
        except self.family.ERRORS as error:
            done(None, error)
            self.is_broken.set()


class Watch(Role):
    """Read all partitions by assignment, ask for their ends, and begin again now and then."""

    def run(self) -> None:
        stretch = 0
        while not self.stopping.is_set():
            reader = self.started_reader(None)
            if reader is None:
                return
            stretch += 1
            try:
                self.read(reader, stretch)
            except self.family.ERRORS as error:
                self.note("read", error)
            self.closed(reader)

    def read(self, reader: Reader, stretch: int) -> None:
        starts = dict.fromkeys(self.places, 0)
        reader.assign(starts)
        self.recorder.look(
            "assign",
            time.monotonic_ns(),
            consumer=self.options.process,
            stretch=stretch,
            starts=named(starts),
        )
        look_at_s = again_at_s = time.monotonic()
        again_at_s += self.chance.uniform(6, 12)
        while not self.stopping.is_set() and time.monotonic() < again_at_s:
            poll_and_record(reader, self.recorder, self.options, stretch=stretch)
            if time.monotonic() > look_at_s:
                look_at_s = time.monotonic() + LOOK_EVERY_S
                self.look(reader)

    def look(self, reader: Reader) -> None:
        """The end that a reader of committed records is told is another mark, so leave it."""
        if self.options.isolation == "read_committed":
            return
        asked_ns = time.monotonic_ns()
        try:
            ends = reader.ends(self.places)
        except self.family.ERRORS as error:
            self.note("ends", error)
            return
        self.recorder.look("watermark", asked_ns, offsets=named(ends))


class Join(Role):
    """Read in a group, commit what was read, and ask where the group stands."""

    def run(self) -> None:
        self.stretch = 0
        self.positions: dict[Place, int] = {}
        while not self.stopping.is_set():
            reader = self.started_reader(self.options.group)
            if reader is None:
                return
            try:
                self.read(reader)
            except self.family.ERRORS as error:
                self.note("read", error)
            self.closed(reader)

    def assigned(self, starts: Mapping[Place, int | None]) -> None:
        self.stretch += 1
        self.positions.clear()
        known = {place: offset for place, offset in starts.items() if offset is not None}
        self.recorder.look(
            "assign",
            time.monotonic_ns(),
            consumer=self.options.process,
            stretch=self.stretch,
            starts=named(known),
        )

    def read(self, reader: Reader) -> None:
        reader.subscribe(self.options.topic, self.assigned)
        look_at_s = time.monotonic() + LOOK_EVERY_S
        while not self.stopping.is_set():
            before = self.stretch
            polled = reader_poll(reader)
            if self.stretch != before:
                # A rebalance fell into this poll: whose records these are cannot be told apart.
                self.rewind(reader, polled[1])
                continue
            record_poll(self.recorder, self.options, polled, stretch=self.stretch)
            self.positions.update({place: offset + 1 for place, offset, _ in polled[1]})
            if polled[1]:
                self.commit(reader)
            if time.monotonic() > look_at_s:
                look_at_s = time.monotonic() + LOOK_EVERY_S
                self.look(reader)

    def rewind(self, reader: Reader, records: Sequence[Record]) -> None:
        """Go back to the first of these, as a new stretch, so that none is passed by."""
        first: dict[Place, int] = {}
        for place, offset, _ in records:
            first.setdefault(place, offset)
        if first:
            reader.seek(first)
            self.assigned(first)

    def commit(self, reader: Reader) -> None:
        offsets = dict(self.positions)
        op = self.recorder.invoke("commit", group=self.options.group, offsets=named(offsets))
        try:
            reader.commit(offsets)
        except self.family.ERRORS as error:
            self.note("commit", error)
            self.recorder.info(op)
        else:
            self.recorder.ok(op)

    def look(self, reader: Reader) -> None:
        asked_ns = time.monotonic_ns()
        try:
            offsets = reader.committed(self.places)
        except self.family.ERRORS as error:
            self.note("committed", error)
            return
        self.recorder.look(
            "committed",
            asked_ns,
            group=self.options.group,
            asked=[name(place) for place in self.places],
            offsets=named(offsets),
        )


class Transactional(Role):
    """What roles with transactions share: each record and each end is written down."""

    ABORT_ONE_IN = 8

    def begin(self) -> None:
        self.count = 0
        self.value = self.options.base
        self.outputs = [(self.options.output, p) for p in range(self.options.partitions)]

    def next(self) -> str:
        self.count += 1
        return f"{self.options.process}/{self.count}"

    def write(self, sender: Sender, transaction: str) -> None:
        """One record into any of the outputs."""
        self.value += 1
        op = self.recorder.invoke(
            "send",
            producer=f"{self.options.process}/{self.restarts}",
            partition=name(place := self.chance.choice(self.outputs)),
            value=self.value,
            acks="all",
            is_idempotent=True,
            transaction=transaction,
        )

        def done(offset: int | None, error: Exception | None) -> None:
            if error is None:
                self.recorder.ok(op, offset=offset)
            else:
                self.recorder.info(op, error=str(error))

        try:
            sender.send(place, self.value, done)
        except self.family.ERRORS as error:
            self.recorder.info(op, error=str(error))
            raise

    def end(self, sender: Sender, this: str, *, is_to_abort: bool, **facts: object) -> None:
        op = self.recorder.invoke(
            "end", transaction=this, has_tried_commit=not is_to_abort, **facts
        )
        try:
            if is_to_abort:
                sender.abort()
            else:
                sender.commit()
        except self.family.ERRORS as error:
            self.trouble(f"{'abort' if is_to_abort else 'end'} of {this}", error)
            self.recorder.info(op)
            raise
        if is_to_abort:
            self.recorder.fail(op)
        else:
            self.recorder.ok(op)


class Transact(Transactional):
    """One transaction after the other without a pause, over any partitions of both topics."""

    RECORDS_MAX = 8

    def run(self) -> None:
        self.begin()
        self.outputs += self.places
        while not self.stopping.is_set():
            sender = self.started_sender(self.options.process)
            if sender is None:
                return
            try:
                while not self.stopping.is_set():
                    self.transaction(sender)
            except self.family.ERRORS as error:
                self.note("transact", error)
            self.closed(sender)

    def transaction(self, sender: Sender) -> None:
        this = self.next()
        is_to_abort = self.chance.randrange(self.ABORT_ONE_IN) == 0
        sender.begin()
        try:
            for _ in range(self.chance.randint(1, self.RECORDS_MAX)):
                self.write(sender, this)
            if is_to_abort:
                sender.flush(FLUSH_S)
        except self.family.ERRORS as error:
            self.trouble(this, error)
            self.end(sender, this, is_to_abort=True)
            raise
        self.end(sender, this, is_to_abort=is_to_abort)


class Pipe(Transactional):
    """Read from one topic, write to another, commit both in one transaction, abort now and then."""

    RECORDS_MAX = 20

    def run(self) -> None:
        self.begin()
        self.stretch = 0
        while not self.stopping.is_set():
            sender = self.started_sender(self.options.process)
            reader = self.started_reader(self.options.group) if sender is not None else None
            if sender is None:
                return
            if reader is not None:
                try:
                    self.pipe(sender, reader)
                except self.family.ERRORS as error:
                    self.note("pipe", error)
                self.closed(reader)
            self.closed(sender)

    def assigned(self, starts: Mapping[Place, int | None]) -> None:
        self.stretch += 1
        known = {place: offset for place, offset in starts.items() if offset is not None}
        self.recorder.look(
            "assign",
            time.monotonic_ns(),
            consumer=self.options.process,
            stretch=self.stretch,
            starts=named(known),
        )

    def pipe(self, sender: Sender, reader: Reader) -> None:
        """Transactions until told to stop; the first error ends this pair of clients."""
        reader.subscribe(self.options.topic, self.assigned)
        while not self.stopping.is_set():
            before = self.stretch
            asked_ns, records = reader_poll(reader)
            if not records:
                continue
            if self.stretch != before:
                self.back(reader, records)
                continue
            taken, left = records[: self.RECORDS_MAX], records[self.RECORDS_MAX :]
            self.transaction(sender, reader, (asked_ns, taken))
            if left:
                self.back(reader, left)

    def back(self, reader: Reader, records: Sequence[Record]) -> None:
        """Read these again, as a new stretch."""
        first: dict[Place, int] = {}
        for place, offset, _ in records:
            first.setdefault(place, offset)
        reader.seek(first)
        self.assigned(first)

    def transaction(self, sender: Sender, reader: Reader, polled: "Polled") -> None:
        this = self.next()
        record_poll(self.recorder, self.options, polled, stretch=self.stretch, transaction=this)
        positions = {place: offset + 1 for place, offset, _ in polled[1]}
        read = {"group": self.options.group, "offsets": named(positions)}
        is_to_abort = self.chance.randrange(self.ABORT_ONE_IN) == 0
        sender.begin()
        try:
            for _ in polled[1]:
                self.write(sender, this)
            sender.send_offsets(positions, reader)
            if is_to_abort:
                sender.flush(FLUSH_S)
        except self.family.ERRORS as error:
            self.trouble(this, error)
            self.end(sender, this, is_to_abort=True, **read)
            raise
        self.end(sender, this, is_to_abort=is_to_abort, **read)
        if is_to_abort:
            self.back(reader, polled[1])


Polled = tuple[int, Sequence[Record]]  # When asked, and what came.


def reader_poll(reader: Reader) -> Polled:
    asked_ns = time.monotonic_ns()
    return asked_ns, reader.poll(0.1)


def record_poll(
    recorder: Recorder,
    options: argparse.Namespace,
    polled: Polled,
    *,
    stretch: int,
    transaction: str | None = None,
) -> None:
    asked_ns, records = polled
    if records:
        recorder.look(
            "poll",
            asked_ns,
            consumer=options.process,
            stretch=stretch,
            records=[(name(place), offset, value) for place, offset, value in records],
            is_committed_only=options.isolation == "read_committed",
            transaction=transaction,
        )


def poll_and_record(
    reader: Reader, recorder: Recorder, options: argparse.Namespace, *, stretch: int
) -> None:
    record_poll(recorder, options, reader_poll(reader), stretch=stretch)


ROLES: Mapping[str, type[Send] | type[Watch] | type[Join] | type[Transact] | type[Pipe]] = {
    "send": Send,
    "watch": Watch,
    "join": Join,
    "transact": Transact,
    "pipe": Pipe,
}
