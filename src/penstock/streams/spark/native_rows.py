"""A stage of expressions as Spark computes it: rows of topics in, rows of topics out, no Python.

A record that cannot be read stops the batch, or becomes a dead letter, as in a stage in Python.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.schemas import dead_letters as letters
from penstock.spark.schema import RANGE_END
from penstock.streams.columns.serde_text import reading, unreadable, writing
from penstock.streams.columns.sql_text import sql_text, text_literal
from penstock.streams.plan.native import NativeStage, NativeWay
from penstock.streams.steps.columns import TopicColumn
from penstock.streams.tasks.batch import ANY_PARTITION, StageWork
from penstock.streams.tasks.progress import POSITION
from penstock.streams.tasks.state_values import encoded
from penstock.streams.values.serdes import LONG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY, VALUE, PROBLEM = "read_key", "read_value", "problem"
PARTS = {"key": KEY, "value": VALUE, "timestamp": "timestamp"}
IS_END = f"(timestampType = {RANGE_END})"
_AT = "concat(topic, '-', partition, '@', offset)"


@dataclass(frozen=True, slots=True)
class NativeRows:
    """The text of a stage."""

    stage: NativeStage
    work: StageWork

    def worked(self, rows: "DataFrame") -> "DataFrame":
        """What the stage makes of its rows."""
        frame = self.read(rows)
        ends = [self._end(way) for way in self.stage.ways]
        if self.work.dead_letters is not None:
            ends.append((f"{PROBLEM} IS NOT NULL", self._letter(self.work.dead_letters)))
        if self.work.progress is not None:
            ends.append((IS_END, self._position(self.work.progress)))
        if len(self.stage.ways) == 1:
            return _one_of(frame, ends)
        whens = [f"CASE WHEN {condition} THEN {_struct(row)} END" for condition, row in ends]
        each = f"explode(array_compact(array({', '.join(whens)})))"
        return frame.selectExpr(f"{each} AS row").selectExpr("row.*")

    def read(self, rows: "DataFrame") -> "DataFrame":
        """The rows with key and value as columns; a problem is told, or stops the batch."""
        stage = self.stage
        read = rows.selectExpr(
            "*",
            f"{reading(stage.key_serde, 'key')} AS {KEY}",
            f"{reading(stage.value_serde, 'value')} AS {VALUE}",
        )
        if not stage.checks_values:
            return read.selectExpr("*", f"cast(NULL AS STRING) AS {PROBLEM}")
        if self.work.dead_letters is not None:
            return read.selectExpr("*", f"{self._problem()} AS {PROBLEM}")
        stop = (
            f"CASE WHEN {self._problem()} IS NULL THEN true ELSE cast(raise_error(concat("
            f"'The record ', {_AT}, ' cannot be read: ', {self._reason()}, '. Set "
            "errors.dead.letter.queue.topic.name to have such records written there and to go on.'"
            ")) AS BOOLEAN) END"
        )
        return read.where(stop).selectExpr("*", f"cast(NULL AS STRING) AS {PROBLEM}")

    def conditions(self, way: NativeWay) -> str:
        """What must hold for a record to go a way."""
        tests = [sql_text(one, PARTS) for one in way.conditions]
        return " AND ".join([f"{PROBLEM} IS NULL", *tests])

    def part(self, way: NativeWay, name: str) -> str:
        """Key or value at the end of a way."""
        return sql_text(way.parts[name], PARTS)

    def _problem(self) -> str:
        """The stage of Connect's in which a record failed; null: it can be read."""
        stage = self.stage
        return (
            f"CASE WHEN timestamp < 0 OR {unreadable(stage.key_serde, 'key', KEY)} "
            f"THEN 'KEY_CONVERTER' WHEN {unreadable(stage.value_serde, 'value', VALUE)} "
            "THEN 'VALUE_CONVERTER' END"
        )

    def _reason(self) -> str:
        stage = self.stage
        told = text_literal(f"the key is not of the {stage.key_serde.name} serde")
        otherwise = text_literal(f"the value is not of the {stage.value_serde.name} serde")
        return (
            "CASE WHEN timestamp < 0 THEN concat('its timestamp is ', timestamp) "
            f"WHEN {unreadable(stage.key_serde, 'key', KEY)} THEN {told} ELSE {otherwise} END"
        )

    def _end(self, way: NativeWay) -> tuple[str, Mapping[str, str]]:
        sink = way.end
        assert sink.key_serde is not None and sink.value_serde is not None
        return f"NOT {IS_END} AND {self.conditions(way)}", {
            "topic": self._topic(way),
            "partition": f"{ANY_PARTITION}",
            "key": writing(sink.key_serde, self.part(way, "key")),
            "value": writing(sink.value_serde, self.part(way, "value")),
            "headers": "headers",
            "timestamp": "timestamp",
        }

    def _topic(self, way: NativeWay) -> str:
        chosen = way.end.topic_of
        if not isinstance(chosen, TopicColumn):
            return text_literal(self.work.name(way.end.topics[0]))
        refusal = f"raise_error(concat('the record ', {_AT}, ' has no topic to go to'))"
        named = sql_text(chosen.column, {**PARTS, **self._sent(way)})
        return f"coalesce(nullif({named}, ''), cast({refusal} AS STRING))"

    def _sent(self, way: NativeWay) -> dict[str, str]:
        return {name: self.part(way, name) for name in ("key", "value")}

    def _position(self, topic: str) -> Mapping[str, str]:
        """Where the next batch begins in a partition, for whoever loses the checkpoint."""
        key, value = position_text("topic", "partition", "offset")
        return {
            "topic": text_literal(topic),
            "partition": "partition",
            "key": key,
            "value": value,
            "headers": "headers",
            "timestamp": "unix_millis(current_timestamp())",
        }

    def _letter(self, topic: str) -> Mapping[str, str]:
        told = {
            letters.TOPIC: "topic",
            letters.PARTITION: "partition",
            letters.OFFSET: "offset",
            letters.PIPELINE: text_literal(self.work.application_id),
            letters.STAGE: PROBLEM,
            letters.ERROR_CLASS: "'SerdeError'",
            letters.MESSAGE: self._reason(),
            letters.TIMESTAMP: "timestamp",
        }
        added = ", ".join(
            f"named_struct('key', '{name}', 'value', cast(cast({cell} AS STRING) AS BINARY))"
            for name, cell in told.items()
        )
        return {
            "topic": text_literal(topic),
            "partition": f"{ANY_PARTITION}",
            "key": "key",
            "value": "value",
            "headers": f"concat(coalesce(headers, array()), array({added}))",
            "timestamp": "greatest(0L, timestamp)",
        }


def position_text(topic: str, partition: str, offset: str) -> tuple[str, str]:
    """The text of what `position_row` writes."""
    key = f"cast(concat('{POSITION.decode()}', {topic}, ' ', {partition}) AS BINARY)"
    front = encoded(0)[:-8].hex()  # Of any number of eight bytes.
    return key, f"concat(X'{front}', {writing(LONG, offset)})"


def _one_of(frame: "DataFrame", ends: Sequence[tuple[str, Mapping[str, str]]]) -> "DataFrame":
    """Rows that come to one end at most."""
    condition = " OR ".join(f"({one})" for one, _ in ends)
    (_, first), *others = ends
    cells = [f"{_chosen(others, name, cell)} AS {name}" for name, cell in first.items()]
    return frame.where(condition).selectExpr(*cells)


def _chosen(others: Sequence[tuple[str, Mapping[str, str]]], name: str, cell: str) -> str:
    whens = [f"WHEN {condition} THEN {row[name]}" for condition, row in others if row[name] != cell]
    return f"CASE {' '.join(whens)} ELSE {cell} END" if whens else cell


def _struct(row: Mapping[str, str]) -> str:
    cells = ", ".join(f"'{name}', {cell}" for name, cell in row.items())
    return f"named_struct({cells})"
