"""Which stages, or beginnings of stages, Spark can compute by itself, and what it computes there.

A way leads from the sources through expressions to a sink, or to the node that adds up. Along it
all expressions are put into each other, so that its end is said in terms of the records alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.streams.columns.resolve import TypedColumn
from penstock.streams.columns.serde_text import is_readable, is_writable
from penstock.streams.plan.nodes import PlanNode, StreamsTopology
from penstock.streams.steps.aggregates import AggregateStream, AggregateWindows
from penstock.streams.steps.columns import FilterColumns, MapColumns, TopicColumn
from penstock.streams.steps.stateless import KeepKeyed, PassOn
from penstock.streams.steps.user import UserStep
from penstock.streams.values.column_types import BOOLEAN, BYTES, ColumnType
from penstock.streams.values.serdes import Serde

_PLAIN_SERDES = ("string", "long", "integer", "bytes")  # Their bytes are read without parsing.
Parts = Mapping[str, TypedColumn]  # Key, value and timestamp, in terms of what was read.


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeWay:
    """A way from the sources to a node: under which conditions, and with what key and value."""

    end: PlanNode
    conditions: tuple[TypedColumn, ...]
    parts: Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeStage:
    """What Spark computes: what it reads, as which serdes, and the ways it goes."""

    key_serde: Serde[Any]
    value_serde: Serde[Any]
    checks_values: bool  # What our own stages wrote can be read, so nobody has to look.
    ways: tuple[NativeWay, ...]


def native_stage(topology: StreamsTopology) -> NativeStage | None:
    """A stage without state, if all of it is expressions; None: it has to run in Python."""
    sources = list(topology.sources)
    found = _begun(sources, topology)
    if found is None:
        return None
    ways = [way for node in sources for way in _ways(topology, node, (), found_parts(found))]
    taken = [way for way in ways if way is not None]
    if len(taken) < len(ways) or not all(_is_written(way) for way in taken) or not taken:
        return None
    return replace(found, ways=tuple(taken))


def native_tally(topology: StreamsTopology) -> NativeStage | None:
    """The beginning of a stage that ends where declared aggregates are added up; None: Python's.

    Records of several topics come in an order that only a task knows, so what depends on it is not
    added up here. What a processor of the user's sees must come record by record.
    """
    sources = list(topology.sources)
    found = _begun(sources, topology)
    users = any(isinstance(node.step, UserStep) for node in topology.nodes)
    if found is None or users:
        return None
    ways = [way for node in sources for way in _ways(topology, node, (), found_parts(found))]
    way = ways[0] if len(ways) == 1 else None
    step = tally_step(way.end) if way is not None else None
    if way is None or step is None:
        return None
    assert step.tally is not None and way.end.key_serde is not None
    is_ordered = step.tally.is_ordered or isinstance(step, AggregateWindows)
    if is_ordered and sum(len(source.topics) for source in sources) > 1:
        return None
    if isinstance(step, AggregateWindows) and _has_extreme_doubles(step):
        return None
    if not keeps_key(found, way) and not is_writable(way.end.key_serde, way.parts["key"].type):
        return None
    return replace(found, ways=(way,))


def keeps_key(stage: NativeStage, way: NativeWay) -> bool:
    """Whether the key's bytes at the end of the way are those that were read."""
    key = way.parts["key"]
    is_read = (key.operation, key.detail) == ("record", "key")
    return is_read and way.end.key_serde == stage.key_serde


def adds_up_what_is_read(stage: NativeStage) -> bool:
    """Whether nothing has to be computed for a tally: what it takes is in the records as they lie.

    JSON has to be parsed, if only to see whether it can be.
    """
    (way,) = stage.ways
    step = tally_step(way.end)
    assert step is not None and step.tally is not None
    serdes = {"key": stage.key_serde, "value": stage.value_serde}
    plain = [part for part, serde in serdes.items() if serde.name in _PLAIN_SERDES]
    columns = [one.column for one in step.tally.columns if one.column is not None]
    return (
        not way.conditions
        and keeps_key(stage, way)
        and way.parts["value"] == found_parts(stage)["value"]
        and (not stage.checks_values or len(plain) == len(serdes))
        and all(one.operation == "record" and one.detail in plain for one in columns)
    )


def _has_extreme_doubles(step: AggregateWindows) -> bool:
    """Whether windows ask for the least or greatest double, where Arrow passes NaN over."""
    assert step.tally is not None
    return any(
        one.kind in ("min", "max") and one.type.name == "double" for one in step.tally.columns
    )


def tally_step(node: PlanNode) -> AggregateStream | AggregateWindows | None:
    """The node's step, if it adds declared aggregates up."""
    step = node.step
    if isinstance(step, AggregateStream | AggregateWindows) and step.tally is not None:
        return step
    return None


def _begun(sources: list[PlanNode], topology: StreamsTopology) -> NativeStage | None:
    """How the sources are read, if all of them alike and by a serde that Spark knows.

    What our own stages wrote need not be looked at, so there the serde may be any.
    """
    first = sources[0]
    keys, values = first.key_serde, first.value_serde
    alike = all((s.key_serde, s.value_serde) == (keys, values) for s in sources)
    if not alike or any(s.is_global or s.intake is not None for s in sources):
        return None
    assert keys is not None and values is not None
    checks = any(t not in topology.internal_topics for s in sources for t in s.topics)
    if checks and not (is_readable(keys) and is_readable(values)):
        return None
    return NativeStage(key_serde=keys, value_serde=values, checks_values=checks, ways=())


def found_parts(stage: NativeStage) -> Parts:
    """Key, value and timestamp as they are read."""
    kinds = {
        "key": _read_type(stage.key_serde),
        "value": _read_type(stage.value_serde),
        "timestamp": ColumnType("long"),
    }
    return {part: TypedColumn("record", (), part, kind) for part, kind in kinds.items()}


def _read_type(serde: Serde[Any]) -> ColumnType:
    """As which type Spark reads what a serde wrote: bytes stay bytes where it cannot read them."""
    return serde.type if serde.type is not None and is_readable(serde) else BYTES


def _ways(
    topology: StreamsTopology, node: PlanNode, conditions: tuple[TypedColumn, ...], parts: Parts
) -> Iterator[NativeWay | None]:
    """The ways from a node to the ends; None among them: there is one that Spark cannot go."""
    for child in topology.children[node.name]:
        step = child.step
        if child.kind == "sink" or tally_step(child) is not None:
            yield NativeWay(end=child, conditions=conditions, parts=parts)
        elif isinstance(step, FilterColumns):
            test = substituted(step.column, parts)
            test = TypedColumn("not", (test,), None, BOOLEAN) if step.inverted else test
            yield from _ways(topology, child, (*conditions, test), parts)
        elif isinstance(step, MapColumns):
            yield from _ways(topology, child, conditions, _mapped(step, parts))
        elif isinstance(step, KeepKeyed):
            yield from _ways(topology, child, (*conditions, _has(parts["key"])), parts)
        elif isinstance(step, PassOn) and child.state is None:
            yield from _ways(topology, child, conditions, parts)
        else:
            yield None


def _mapped(step: MapColumns, parts: Parts) -> Parts:
    key = substituted(step.key, parts) if step.key else parts["key"]
    value = substituted(step.value, parts) if step.value else parts["value"]
    return {**parts, "key": key, "value": value}


def _has(column: TypedColumn) -> TypedColumn:
    nothing = TypedColumn("is null", (column,), None, BOOLEAN)
    return TypedColumn("not", (nothing,), None, BOOLEAN)


def substituted(column: TypedColumn, parts: Parts) -> TypedColumn:
    """The expression with what key, value and timestamp have become meanwhile."""
    if column.operation == "record":
        return parts[column.detail]
    operands = tuple(substituted(one, parts) for one in column.operands)
    return replace(column, operands=operands)


def _is_written(way: NativeWay) -> bool:
    """Whether Spark can write the way's end as its sink wants it."""
    sink = way.end
    chosen = sink.topic_of is None or isinstance(sink.topic_of, TopicColumn)
    return (
        chosen
        and is_writable(sink.key_serde, way.parts["key"].type)
        and is_writable(sink.value_serde, way.parts["value"].type)
    )
