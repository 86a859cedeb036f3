"""Random histories of several instances, of which any number believe that they lead.

The topic is a model of what brokers promise: an epoch for each beginning, no batch of an older
epoch behind one of a newer, a batch once however often it is sent. Everything that an instance asks
of it waits until the history lets it happen: at once, without its answer, or long after whoever
asked has given up or died. The stores are the real ones.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client.wire.fenced_writer import WriteOutcomeUnknown, WriterFenced
from penstock.registry.records import NOOP, StoreRecord
from penstock.registry.registering import SchemaRegistration, SchemaRequest, register
from penstock.registry.service.store import NotLeading, SchemaStore
from penstock.registry.service.topic import BegunTerm, ReadRecord
from penstock.registry.state import RegistryState
from penstock.schemas.definitions.parse import parse_definition

INSTANCES = 3
SUBJECTS = ("a", "b")
_TURNS = 30


class InlineExecutor(Executor):
    """Decisions happen where they are asked for, so that a history is always the same."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  (whoever waits gets it)
            done.set_exception(error)
        return done


@dataclass
class Brokers:
    """The log, and the coordinator that gives epochs."""

    log: list[ReadRecord] = field(default_factory=list)
    epoch: int = 0  # The last that was given.
    fenced_below: int = 0  # The highest epoch in the log.
    sequences: dict[int, int] = field(default_factory=dict)  # Records stored, by epoch.
    is_fencing: bool = True

    def begin(self) -> int:
        self.epoch += 1
        return self.epoch

    def append(self, records: Sequence[StoreRecord], epoch: int, sequence: int) -> int:
        if self.is_fencing and epoch < self.fenced_below:
            raise WriterFenced("an older epoch")
        self.fenced_below = max(self.fenced_below, epoch)
        stored = self.sequences.get(epoch, 0)
        if sequence < stored:
            return -1  # A duplicate; only what nobody waits for any more is sent twice here.
        self.sequences[epoch] = stored + len(records)
        return self.put(records)

    def put(self, records: Sequence[StoreRecord]) -> int:
        first = len(self.log)
        for record in records:
            self.log.append(ReadRecord(len(self.log), record.key, record.value))
        return first


@dataclass
class Pending:
    """Something that an instance asked for."""

    act: Callable[[], Any]
    answer: "asyncio.Future[Any]"
    is_write: bool


class InstanceTopic:
    """What one instance sees of the brokers."""

    def __init__(self, brokers: Brokers, pending: list[Pending]) -> None:
        self._brokers = brokers
        self._pending = pending
        self._epoch = 0
        self._sequence = 0
        self._is_in_term = False
        self._read = 0

    async def _ask(self, act: Callable[[], Any], *, is_write: bool = False) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending.append(Pending(act, answer, is_write))
        return await answer

    async def mark(self) -> int:
        return int(await self._ask(lambda: self._brokers.put([NOOP])))

    @property
    def is_in_term(self) -> bool:
        return self._is_in_term

    def leave_term(self) -> None:
        self._is_in_term = False

    async def begin_term(self) -> BegunTerm:
        self._epoch, self._sequence = await self._ask(self._brokers.begin), 0
        offset = await self._write([NOOP])
        self._is_in_term = True
        return BegunTerm(offset, 1)

    async def retire(self, producer_ids: Sequence[int]) -> int:
        raise AssertionError("there is one producer id")

    async def append(self, records: Sequence[StoreRecord]) -> int:
        return await self._write(records)

    async def _write(self, records: Sequence[StoreRecord]) -> int:
        epoch, sequence = self._epoch, self._sequence
        offset = await self._ask(
            lambda: self._brokers.append(records, epoch, sequence), is_write=True
        )
        self._sequence += len(records)
        return int(offset)

    async def read(self) -> Sequence[ReadRecord]:
        def found() -> Sequence[ReadRecord]:
            records = self._brokers.log[self._read :]
            self._read += len(records)
            return records

        return list(await self._ask(found))


class Instance:
    """A registry's store that may be killed."""

    def __init__(self, brokers: Brokers) -> None:
        self.is_leading = False
        self.pending: list[Pending] = []
        topic = InstanceTopic(brokers, self.pending)
        state = RegistryState()
        self.store = SchemaStore(topic, state, timeout_s=10_000, is_leading=lambda: self.is_leading)
        self.store._thread.shutdown()
        self.store._thread = InlineExecutor()  # type: ignore[assignment]
        self.tasks: set[asyncio.Task[Any]] = {asyncio.create_task(self.store.follow())}

    async def kill(self) -> None:
        for task in (*self.tasks, *self.store._changes):
            task.cancel()
        await asyncio.sleep(0)
        self.store.close()


class History:
    """Several instances on the same brokers, and what their clients were told."""

    def __init__(self, *, is_fencing: bool = True) -> None:
        self.brokers = Brokers(is_fencing=is_fencing)
        # Any schema may follow any other: compatibility is not what this is about.
        key = b'{"keytype":"CONFIG","subject":null,"magic":0}'
        self.brokers.put([StoreRecord(key=key, value=b'{"compatibilityLevel":"NONE"}')])
        self.instances = [Instance(self.brokers) for _ in range(INSTANCES)]
        self.late: list[Callable[[], Any]] = []  # Writes that nobody waits for any more.
        self.told: list[tuple[str, int, int, str]] = []  # Subject, version, id, text.

    async def register(self, at: int, subject: str, number: int) -> None:
        text = json.dumps({"type": "enum", "name": "E", "symbols": [f"S{number}"]})
        asked = SchemaRequest.of({"schema": text})
        instance = self.instances[at]

        def decide(state: RegistryState) -> SchemaRegistration:
            return register(state, subject, asked, parse_definition)

        async def ask() -> None:
            try:
                made = (await instance.store.change(decide)).version
            except (NotLeading, Exception):  # noqa: BLE001  (whatever is told, it may try again)
                return
            self.told.append((subject, made.version, made.schema_id, made.content.text))

        task = asyncio.create_task(ask())
        instance.tasks.add(task)
        await self.settle()

    async def run(self, at: int, count: int) -> None:
        """Let the next things that an instance asked for happen, in their order."""
        for _ in range(count):
            pending = self.instances[at].pending
            if pending:
                self._carry_out(pending.pop(0))
            await self.settle()

    async def fail(self, at: int, fate: str) -> None:
        """The next write of an instance gets no answer."""
        pending = self.instances[at].pending
        for one in [one for one in pending if one.is_write][:1]:
            pending.remove(one)
            if fate == "unanswered":
                self._try(one.act)
            elif fate == "late":
                self.late.append(one.act)
            one.answer.set_exception(WriteOutcomeUnknown("no answer"))
        await self.settle()

    def _carry_out(self, one: Pending) -> None:
        try:
            one.answer.set_result(one.act())
        except WriterFenced as error:
            one.answer.set_exception(error)

    def _try(self, act: Callable[[], Any]) -> None:
        with suppress(WriterFenced):
            act()

    async def kill(self, at: int) -> None:
        dead = self.instances[at]
        await dead.kill()
        self.late += [one.act for one in dead.pending if one.is_write]
        self.instances[at] = Instance(self.brokers)
        await self.settle()

    def arrive(self, which: int) -> None:
        """A write arrives that is long given up."""
        if self.late:
            self._try(self.late.pop(which % len(self.late)))

    async def settle(self) -> None:
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def finish(self) -> RegistryState:
        for instance in self.instances:
            await instance.kill()
        state = RegistryState()
        for record in self.brokers.log:
            state.apply(record.key, record.value)
        return state


AT = st.integers(0, INSTANCES - 1)
WHAT = st.tuples(st.sampled_from(SUBJECTS), st.integers(0, 30))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), AT, WHAT),
        st.tuples(st.just("run"), AT, st.integers(1, 12)),
        st.tuples(st.just("run"), AT, st.integers(1, 12)),
        st.tuples(st.just("fail"), AT, st.sampled_from(["unanswered", "late", "late", "never"])),
        st.tuples(st.just("resign"), AT, st.none()),
        st.tuples(st.just("kill"), AT, st.none()),
        st.tuples(st.just("arrive"), st.integers(0, 5), st.none()),
    ),
    min_size=30,
    max_size=90,
)


async def play(steps: list[Any], *, is_fencing: bool = True) -> History:
    """Whoever is asked to register believes that it leads, until it resigns or dies."""
    history = History(is_fencing=is_fencing)
    for kind, at, detail in steps:
        if kind == "register":
            history.instances[at].is_leading = True
            await history.register(at, *detail)
        elif kind == "run":
            await history.run(at, detail)
        elif kind == "fail":
            await history.fail(at, detail)
        elif kind == "resign":
            history.instances[at].is_leading = False
        elif kind == "kill":
            await history.kill(at)
        else:
            history.arrive(at)
    while history.late:
        history.arrive(0)
    return history


def doubles(log: Sequence[ReadRecord]) -> list[tuple[int, str, str]]:
    """Ids that were given to two schemas, and versions that were written twice."""
    texts: dict[Any, str] = {}
    found = []
    for record in log:
        if record.value is None or record.key is None or b"SCHEMA" not in record.key:
            continue
        value = json.loads(record.value)
        for name in (value["id"], (value["subject"], value["version"])):
            held = texts.setdefault(name, value["schema"])
            if held != value["schema"]:
                found.append((name, held, value["schema"]))
    return found


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_no_id_is_given_twice_and_nothing_is_lost_whoever_believes_to_lead(
    steps: list[Any],
) -> None:
    async def run() -> None:
        history = await play(steps)
        state = await history.finish()
        assert doubles(history.brokers.log) == []
        for subject, version, schema_id, text in history.told:
            kept = state.versions(subject)[version]
            assert (kept.schema_id, kept.content.text) == (schema_id, text)

    asyncio.run(run())


def test_without_fences_two_leaders_give_one_id_to_two_schemas() -> None:
    """The model can fail: an old leader's write arrives behind a new leader's."""
    steps = [
        ("register", 0, ("a", 0)),
        ("run", 0, 10),
        ("register", 0, ("a", 1)),
        ("run", 0, 1),  # A read; what follows is the write.
        ("fail", 0, "late"),
        ("register", 1, ("b", 2)),
        ("run", 1, 10),
        ("arrive", 0, None),
    ]

    async def run(is_fencing: bool) -> list[Any]:
        history = await play(steps, is_fencing=is_fencing)
        await history.finish()
        return doubles(history.brokers.log)

    assert asyncio.run(run(True)) == []
    assert asyncio.run(run(False)) != []
