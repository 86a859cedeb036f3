"""Foreign-key joins: a left row subscribes at the right row it points to, which answers.

Subscriptions travel by foreign key, answers by primary key. An answer names the left row it is for;
one whose left row has changed meanwhile is dropped, for the newer row has asked again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from penstock.streams.steps.contract import NOTHING, Arrival, RecordStep, Yielded, kept
from penstock.streams.values.records import Stamped, StreamRecord
from penstock.streams.values.serdes import Serde


class Instruction(Enum):
    """What a subscription wants of the foreign key's place."""

    END_SILENTLY = "delete, no answer"
    END_AND_TELL = "delete, answer with nothing"
    TELL_ALWAYS = "answer, with nothing if there is no row"
    TELL_IF_FOUND = "answer only if there is a row"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSubscription:
    """A left row's wish; `version` is the row's bytes, None when it was deleted."""

    ask: Instruction
    primary_key: Any
    primary_bytes: bytes
    version: bytes | None
    partition: int | None = None  # Where the left row lies; a host with partitions tells it.


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignAnswer:
    """The right row's value for one version of a left row."""

    version: bytes | None
    value: Any
    partition: int | None = None  # Where the left row lies that asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribeRows(RecordStep):
    """A changed left row leaves its old foreign key and asks at its new one."""

    foreign_key: Callable[[Any, Any], Any]
    left: bool
    key_serde: Serde[Any]
    value_serde: Serde[Any]
    foreign_serde: Serde[Any]
    # Where answers come batches later, a row may have changed by then, and its answer is dropped.
    # So there every version is asked about, also one without a foreign key, which gets nothing.
    every_version: bool = False

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one change of the left table."""
        record, change = arrival.record, arrival.record.value
        if change.old is None and change.new is None:
            return NOTHING
        old = None if change.old is None else self.foreign_key(record.key, change.old)
        new = None if change.new is None else self.foreign_key(record.key, change.new)
        asks = self._left_asks(old, new) if self.left else self._inner_asks(old, new)
        return Yielded(records=tuple(self._asking(arrival, key, ask) for key, ask in asks))

    def _left_asks(self, old: Any, new: Any) -> list[tuple[Any, Instruction]]:
        leaves = (
            [(old, Instruction.END_SILENTLY)] if old is not None and self._moved(old, new) else []
        )
        return [*leaves, (new, Instruction.TELL_ALWAYS)]

    def _inner_asks(self, old: Any, new: Any) -> list[tuple[Any, Instruction]]:
        if new is None and old is None:
            return [(None, Instruction.TELL_ALWAYS)] if self.every_version else []
        if new is None:
            return [(old, Instruction.END_AND_TELL)]
        if old is None or not self._moved(old, new):
            always, if_found = Instruction.TELL_ALWAYS, Instruction.TELL_IF_FOUND
            return [(new, always if self.every_version else if_found)]
        return [(old, Instruction.END_SILENTLY), (new, Instruction.TELL_ALWAYS)]

    def _moved(self, old: Any, new: Any) -> bool:
        return self.foreign_serde.serialize(old) != self.foreign_serde.serialize(new)

    def _asking(self, arrival: Arrival, key: Any, ask: Instruction) -> StreamRecord:
        record = arrival.record
        subscription = ForeignSubscription(
            ask=ask,
            primary_key=record.key,
            primary_bytes=self.key_serde.serialize(record.key) or b"",
            version=self.value_serde.serialize(record.value.new),
        )
        return record.with_key(key).with_value(subscription)


Subscriptions = tuple[tuple[bytes, ForeignSubscription], ...]  # By primary key's bytes.


@dataclass(frozen=True, slots=True)
class KeepSubscriptions(RecordStep):
    """Remembers who points at a foreign key, and passes the wish on to be answered."""

    has_state = True

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one subscription."""
        record, wish = arrival.record, arrival.record.value
        if record.key is None:
            return kept(arrival, record) if wish.ask is Instruction.TELL_ALWAYS else kept(arrival)
        known = dict(arrival.state or ())
        known.pop(wish.primary_bytes, None)
        if wish.ask not in (Instruction.END_SILENTLY, Instruction.END_AND_TELL):
            known[wish.primary_bytes] = wish
        state = tuple(sorted(known.items(), key=lambda one: one[0])) or None
        return Yielded(records=(record,), state=state, clock=arrival.clock)


@dataclass(frozen=True, slots=True)
class AnswerSubscription(RecordStep):
    """Answers a wish with the right table's row of now."""

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one subscription."""
        record, wish, row = arrival.record, arrival.record.value, arrival.found
        silent = wish.ask is Instruction.END_SILENTLY or (
            wish.ask is Instruction.TELL_IF_FOUND and row is None
        )
        if silent:
            return NOTHING
        at_ms = record.timestamp_ms if row is None else max(record.timestamp_ms, row.timestamp_ms)
        value = None if row is None or wish.ask is Instruction.END_AND_TELL else row.value
        answer = ForeignAnswer(version=wish.version, value=value, partition=wish.partition)
        return Yielded(records=(record.with_key(wish.primary_key).with_value(answer).at(at_ms),))


@dataclass(frozen=True, slots=True)
class AnswerSubscribers(RecordStep):
    """A changed right row is told to all who point at it."""

    has_state = True

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one change of the right table."""
        record = arrival.record
        wishes = [] if record.key is None else [wish for _, wish in arrival.state or ()]
        sent = (
            record.with_key(wish.primary_key).with_value(
                ForeignAnswer(
                    version=wish.version, value=record.value.new, partition=wish.partition
                )
            )
            for wish in wishes
        )
        return kept(arrival, *sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveAnswer(RecordStep):
    """Joins an answer with the left row it is for, if that row still is as it was."""

    joiner: Callable[[Any, Any], Any]
    left: bool
    value_serde: Serde[Any]

    def take(self, arrival: Arrival) -> Yielded:
        """Work on one answer."""
        record, answer, row = arrival.record, arrival.record.value, arrival.found
        if answer.version != self._version(row):
            return NOTHING
        value = None if row is None else row.value
        nothing = answer.value is None and (not self.left or row is None)
        joined = None if nothing else self.joiner(value, answer.value)
        return Yielded(records=(record.with_value(joined),))

    def _version(self, row: Stamped | None) -> bytes | None:
        return None if row is None else self.value_serde.serialize(row.value)
