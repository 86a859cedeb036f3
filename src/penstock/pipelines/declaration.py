"""What a pipeline is: a pure function of data frames, and where its rows come from and go.

Only words and checks; nothing here knows Spark, so a file of pipelines can be read, listed and
tested without starting it. A mistake in a declaration is a ConfigError that names the pipeline.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.spark.formats import Format

Mode: TypeAlias = Literal["append", "update", "complete"]
Delivery: TypeAlias = Literal["exactly-once", "at-least-once"]
OnError: TypeAlias = Literal["fail", "null"]
TableFormat: TypeAlias = Literal["delta", "iceberg", "parquet"]
Transform: TypeAlias = "Callable[..., DataFrame]"

MODES = ("append", "update", "complete")
DELIVERIES = ("exactly-once", "at-least-once")
ON_ERROR = ("fail", "null")
ONCE = "once"  # A trigger: take what is there, then end.

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_INTERVAL = re.compile(r"\d+ +(milliseconds?|seconds?|minutes?|hours?|days?)")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as an input or an output.

    `value` says what a record's value is: a schema in Spark's words ("name STRING, cents LONG")
    for JSON, or a format of `penstock.spark.formats`; None leaves Kafka's own columns (key, value,
    topic, ...). On output the columns become the value and `key` names the column for the key.
    With `partitions` the topic is created when it is missing, with `configs`.

    A record whose value cannot be decoded fails the query with its topic, partition and offset
    (`on_error="fail"`), or gives a row of nulls ("null"), or goes to the topic `dead_letter`. So
    does a batch that cannot be read, as a whole: one row, or one dead letter with its offsets.
    """

    name: str
    value: "str | Format | None" = None
    key: str | None = None
    on_error: OnError = "fail"
    dead_letter: str | None = None
    starting: str = "earliest"  # What startingOffsets takes, for the first run.
    as_table: bool = False  # Read what the topic holds now, the newest record of each key.
    partitions: int | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)  # More options of the source or sink.

    @property
    def label(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Table:
    """A lake table as an output.

    Rows are appended. With `upsert` each row replaces the one with the same values in those
    columns; `order_by` tells which of several rows of one key in a batch is the last, and a row for
    which the SQL condition `delete_when` holds deletes the old one instead.
    """

    path: str
    format: TableFormat = "delta"
    partition_by: Sequence[str] = ()
    upsert: Sequence[str] = ()
    order_by: str | None = None
    delete_when: str | None = None

    @property
    def label(self) -> str:
        return Path(self.path).name


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """An output of its own for the records of an input that cannot be decoded."""

    topic: str
    source: Topic

    @property
    def label(self) -> str:
        return self.topic


Output: TypeAlias = Topic | Table | DeadLetters


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A declared pipeline: `transform` called with the inputs by name gives the rows to write."""

    name: str
    transform: Transform
    inputs: Mapping[str, Topic]
    outputs: tuple[Topic | Table, ...]
    mode: Mode
    trigger: str  # An interval such as "2 seconds", or "once".
    delivery: Delivery
    checkpoint: str | None  # None: in the state directory of the supervisor.
    group: str  # The consumer group that shows how far it is.

    def __call__(self, *frames: "DataFrame", **named: "DataFrame") -> "DataFrame":
        """The pure function itself, for tests and notebooks."""
        return self.transform(*frames, **named)

    @property
    def streams(self) -> dict[str, Topic]:
        """The inputs that flow, by name; tables are looked at."""
        return {name: topic for name, topic in self.inputs.items() if not topic.as_table}

    @property
    def queries(self) -> dict[str, Output]:
        """One query for each output, by a name that also names its checkpoint."""
        found: dict[str, Output] = {f"{self.name}.{one.label}": one for one in self.outputs}
        if len(self.outputs) == 1:
            found = {self.name: self.outputs[0]}
        for topic in self.streams.values():
            if topic.dead_letter is not None:
                found[f"{self.name}.{topic.dead_letter}"] = DeadLetters(topic.dead_letter, topic)
        return found

    def group_of(self, query: str) -> str:
        """The group of one of its queries: each reads for itself, so each has its own lag."""
        return self.group + query.removeprefix(self.name)


def pipeline(
    *,
    inputs: Mapping[str, Topic] | Topic,
    output: Topic | Table | None = None,
    outputs: Sequence[Topic | Table] = (),
    mode: Mode = "append",
    trigger: str = "1 second",
    delivery: Delivery = "exactly-once",
    checkpoint: str | None = None,
    group: str | None = None,
    name: str | None = None,
) -> Callable[[Transform], Pipeline]:
    """Declare a function of data frames to be a pipeline."""

    def declare(transform: Transform) -> Pipeline:
        called = name or transform.__name__.replace("_", "-")
        all_outputs = ([output] if output is not None else []) + list(outputs)
        declared = Pipeline(
            name=called,
            transform=transform,
            inputs={_only_parameter(transform): inputs} if isinstance(inputs, Topic) else inputs,
            outputs=tuple(all_outputs),
            mode=mode,
            trigger=trigger,
            delivery=delivery,
            checkpoint=checkpoint,
            group=group or called,
        )
        check(declared)
        return declared

    return declare


def check(declared: Pipeline) -> None:
    """Refuse what could not run, before Spark is started for it."""
    name = declared.name
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"pipeline {name!r}: a name is made of letters, digits, dots, dashes and underscores"
        )
    if not declared.outputs:
        raise ConfigError(
            f"pipeline {name}: it has no output; give output=Topic(...) or Table(...)"
        )
    if not declared.streams:
        raise ConfigError(f"pipeline {name}: it needs at least one topic to read as a stream")
    labels = [output.label for output in declared.outputs]
    if len(set(labels)) < len(labels):
        raise ConfigError(f"pipeline {name}: two outputs have the same name, {labels[0]}")
    _check_words(declared)
    for source in declared.inputs.values():
        _check_input(name, source)
    for target in declared.outputs:
        _check_output(name, target, declared.mode)


def _check_words(declared: Pipeline) -> None:
    name = declared.name
    if declared.mode not in MODES:
        raise ConfigError(f"pipeline {name}: mode={declared.mode!r} is none of {', '.join(MODES)}")
    if declared.delivery not in DELIVERIES:
        raise ConfigError(
            f"pipeline {name}: delivery={declared.delivery!r} is none of {', '.join(DELIVERIES)}"
        )
    if declared.trigger != ONCE and not _INTERVAL.fullmatch(declared.trigger):
        raise ConfigError(
            f"pipeline {name}: trigger={declared.trigger!r} is neither an interval such as "
            "'2 seconds' nor 'once'"
        )


def _check_input(name: str, topic: Topic) -> None:
    if topic.on_error not in ON_ERROR:
        raise ConfigError(
            f"pipeline {name}: on_error={topic.on_error!r} is none of {', '.join(ON_ERROR)}; for "
            "dead letters give dead_letter='a topic'"
        )
    if topic.dead_letter and (topic.value is None or topic.as_table or topic.on_error == "null"):
        raise ConfigError(
            f"pipeline {name}: dead_letter of {topic.name} needs a stream with a value to decode "
            "and on_error='fail'"
        )


def _check_output(name: str, output: Topic | Table, mode: Mode) -> None:
    if isinstance(output, Topic):
        if output.as_table:
            raise ConfigError(f"pipeline {name}: as_table is for inputs, not for {output.name}")
        return
    if output.upsert and output.format != "delta":
        raise ConfigError(f"pipeline {name}: upsert needs a delta table, not {output.format}")
    if (output.delete_when or output.order_by) and not output.upsert:
        word = "delete_when" if output.delete_when else "order_by"
        raise ConfigError(f"pipeline {name}: {word} needs upsert, the columns of the key")
    if mode == "complete":
        raise ConfigError(f"pipeline {name}: the table {output.path} takes mode='update' at most")
    if mode != "append" and not output.upsert:
        raise ConfigError(
            f"pipeline {name}: mode={mode!r} writes a row again when it changes; the table "
            f"{output.path} takes that only with upsert=[...], the columns of its key"
        )


def _only_parameter(transform: Transform) -> str:
    from inspect import signature

    names = list(signature(transform).parameters)
    if len(names) != 1:
        raise ConfigError(
            f"pipeline {transform.__name__}: its function has {len(names)} parameters; name the "
            "inputs: inputs={'parameter': Topic(...)}"
        )
    return names[0]
