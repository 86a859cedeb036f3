"""One task: records go from node to node, depth first, through steps and their memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from penstock.streams.plan.nodes import PlanNode, StoreSpec, StreamsTopology
from penstock.streams.steps.contract import Arrival, Yielded
from penstock.streams.steps.stateless import BranchRecords
from penstock.streams.steps.user import Processor, UserStep, UserStore
from penstock.streams.tasks.holding import Held, hold
from penstock.streams.tasks.memory import MemoryStore, StateMemory, StepMemory
from penstock.streams.values.records import Stamped, StreamRecord
from penstock.streams.words.kafka_words import KafkaWords

Taker = Callable[[StreamRecord], None]  # What takes a record at a node.
NEVER_MS = 2**63 - 1


@dataclass(slots=True, kw_only=True)
class Punctuation:
    """A punctuator and when it is next due."""

    node: str
    interval_ms: int
    kind: str
    punctuator: Callable[[int], None]
    due_ms: int

    def cancel(self) -> None:
        """Call it no more. Its place stays, for a host keeps the times by place."""
        self.due_ms = NEVER_MS


@dataclass(slots=True)
class TaskContext(KafkaWords):
    """A user's processor's way to its task."""

    task: "Task"
    node: PlanNode
    record: StreamRecord | None = None  # The one that is worked on; None: a punctuator works.

    def forward(self, record: StreamRecord) -> None:
        """Send a record on."""
        step, taken = self.node.step, self.record
        keeps_key = isinstance(step, UserStep) and step.keeps_key
        if keeps_key and taken is not None and record.key != taken.key:
            raise ValueError(
                f"{self.node.name} sends the key {record.key!r} for {taken.key!r}: process_values "
                "keeps keys, process may change them."
            )
        if record.timestamp_ms < 0:
            raise ValueError(f"{self.node.name} sends a record of the time {record.timestamp_ms}")
        self.task.forward(self.node, record)

    def store(self, name: str) -> UserStore:
        """A store the processor was given."""
        step = self.node.step
        if not isinstance(step, UserStep) or name not in step.stores:
            raise KeyError(f"Processor {self.node.name} has no access to StateStore {name}")
        return self.task.user_stores[name]

    def schedule(
        self, interval_ms: int, kind: str, punctuator: Callable[[int], None]
    ) -> Punctuation:
        """Call at every interval of `stream` time or of the `wall` clock."""
        if kind not in ("stream", "wall"):
            raise ValueError(f"{kind!r} is neither stream time nor wall clock")
        due_ms = self.task.wall_clock_ms + interval_ms if kind == "wall" else 0
        punctuation = Punctuation(
            node=self.node.name,
            interval_ms=interval_ms,
            kind=kind,
            punctuator=punctuator,
            due_ms=due_ms,
        )
        self.task.punctuations.append(punctuation)
        return punctuation

    @property
    def stream_time_ms(self) -> int:
        """The latest time of any record of the task."""
        return self.task.stream_time_ms

    @property
    def wall_clock_ms(self) -> int:
        """The task's clock."""
        return self.task.wall_clock_ms


@dataclass(slots=True)
class Task:
    """A topology at work on one partition of everything."""

    topology: StreamsTopology
    emit: Callable[[PlanNode, StreamRecord], None]
    wall_clock_ms: int = 0
    stream_time_ms: int = -1
    make_memory: Callable[[str], StateMemory] = lambda state: StepMemory()
    make_store: Callable[[StoreSpec], UserStore] = lambda store: MemoryStore(store.key_serde)
    memories: dict[str, StateMemory] = field(default_factory=dict)
    user_stores: dict[str, UserStore] = field(default_factory=dict)
    processors: dict[str, tuple[Processor, TaskContext]] = field(default_factory=dict)
    punctuations: list[Punctuation] = field(default_factory=list)
    holds: frozenset[str] = frozenset()  # Nodes whose results wait until they are released.
    _held: dict[str, Held] = field(default_factory=dict)  # By state, which inputs may share.
    _takers: dict[str, tuple[Taker, ...]] = field(default_factory=dict)  # Of a node's children.

    def start(self) -> None:
        """Make the stores and the user's processors."""
        for store in self.topology.stores:
            if store.kind == "user":
                self.user_stores[store.name] = self.make_store(store)
        for node in self.topology.nodes:
            if isinstance(node.step, UserStep):
                processor = node.step.supplier()
                context = TaskContext(self, node)
                self.processors[node.name] = processor, context
                processor.init(context)

    def close(self) -> None:
        """End the user's processors."""
        for processor, _ in self.processors.values():
            processor.close()

    def process(self, source: PlanNode, record: StreamRecord) -> None:
        """Take one record of a topic all the way down."""
        if not source.is_global:
            self.stream_time_ms = max(self.stream_time_ms, record.timestamp_ms)
        self.forward(source, record)

    def punctuate(self, kind: str) -> None:
        """Call the punctuators that are due, each at most once for now."""
        now_ms = self.stream_time_ms if kind == "stream" else self.wall_clock_ms
        for one in tuple(self.punctuations):
            if one.kind != kind or now_ms < 0:
                continue
            if one.due_ms <= now_ms:
                one.due_ms += one.interval_ms * (1 + (now_ms - one.due_ms) // one.interval_ms)
                one.punctuator(now_ms)

    def forward(self, node: PlanNode, record: StreamRecord) -> None:
        """Give the record to all children of the node."""
        for take in self._sends(node.name):
            take(record)

    def release(self) -> None:
        """Send on what was held, in the order of the last changes."""
        while self._held:
            for node, record in self._held.pop(next(iter(self._held))).values():
                self.forward(node, record)

    def merge(
        self,
        node: PlanNode,
        key: bytes,
        record: StreamRecord,
        take: Callable[[Arrival], Yielded],
    ) -> None:
        """Give a node what a batch adds up to for a key, and its results to its children."""
        assert node.state is not None
        memory = self.memory(node.state)
        arrival = Arrival(record=record, key=key, state=memory.state(key), clock=memory.clock)
        yielded = take(arrival)
        memory.clock = yielded.clock
        memory.put(key, record.key, yielded.state, None)
        self._send(node, yielded)

    def memory(self, state: str) -> StateMemory:
        """The memory under a state's name."""
        found = self.memories.get(state)
        if found is None:
            found = self.memories[state] = self.make_memory(state)
        return found

    def row(self, name: str, key: Any) -> Stamped | None:
        """The row a table has for the key now."""
        node = self.topology.by_name[name]
        if key is None:
            return None
        state = clock = None
        if node.state is not None:
            memory = self.memory(node.state)
            state = memory.state(_key_bytes(node, node.step.held_under(key)))
            clock = memory.clock
        return node.step.row(
            key, state, clock, lambda: tuple(self.row(parent, key) for parent in node.rows_of)
        )

    def _sends(self, name: str) -> tuple[Taker, ...]:
        """What takes the records that a node sends; found out once, for it is asked each time."""
        found = self._takers.get(name)
        if found is None:
            children = self.topology.children[name]
            found = self._takers[name] = tuple(self._taker(child) for child in children)
        return found

    def _taker(self, node: PlanNode) -> Taker:
        if node.kind == "sink":
            return partial(self.emit, node)
        if isinstance(node.step, UserStep):
            return partial(self._process, node.name)
        if isinstance(node.step, BranchRecords):
            return self._branching(node.step, node)
        return self._plain(node) if node.state is None else partial(self._step, node)

    def _process(self, name: str, record: StreamRecord) -> None:
        processor, context = self.processors[name]
        before, context.record = context.record, record
        try:
            processor.process(record)
        finally:
            context.record = before

    def _branching(self, step: BranchRecords, node: PlanNode) -> Taker:
        ways = [self._taker(self.topology.by_name[name]) for name in node.branches]

        def take(record: StreamRecord) -> None:
            number = step.branch(record)
            if number is not None:
                ways[number](record)

        return take

    def _plain(self, node: PlanNode) -> Taker:
        """A step without state: nothing is remembered, so little is asked for each record."""
        work, lookup_key, table = node.step.take, node.step.lookup_key, node.table
        sends = self._sends(node.name)

        def take(record: StreamRecord) -> None:
            found = None if table is None else self.row(table, lookup_key(record))
            for one in work(Arrival(record, b"", None, None, found)).records:
                for send in sends:
                    send(one)

        return take

    def _step(self, node: PlanNode, record: StreamRecord) -> None:
        step = node.step
        assert node.state is not None
        found = None if node.table is None else self.row(node.table, step.lookup_key(record))
        memory = self.memory(node.state)
        memory.clock = step.advance(memory.clock, record)
        if step.sweeps_first:
            self._sweep(node, memory, record)
        key = _key_bytes(node, record.key)
        yielded = step.take(Arrival(record, key, memory.state(key), memory.clock, found))
        memory.clock = yielded.clock
        if record.key is not None:
            memory.put(key, record.key, yielded.state, yielded.timers)
        if node.name in self.holds:
            hold(self._held.setdefault(node.state, {}), node, key, yielded.records)
        else:
            self._send(node, yielded)
        if not step.sweeps_first:
            self._sweep(node, memory, record)

    def _sweep(self, node: PlanNode, memory: StateMemory, record: StreamRecord) -> None:
        due, memory.clock = node.step.sweep(memory.clock, record, memory.timers)
        for timer in due:
            key, state = memory.entry(timer.key)
            yielded = node.step.fire(timer, state, memory.clock, record)
            memory.clock = yielded.clock
            memory.put(timer.key, key, yielded.state, yielded.timers)
            self._send(node, yielded)

    def _send(self, node: PlanNode, yielded: Yielded) -> None:
        sends = self._sends(node.name)
        for record in yielded.records:
            for send in sends:
                send(record)


def _key_bytes(node: PlanNode, key: Any) -> bytes:
    assert node.key_serde is not None
    return node.key_serde.serialize(key) or b""
