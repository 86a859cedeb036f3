"""A wrong argument is told where it is given, in a sentence, and not by the first record."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from penstock.streams import (
    JoinWindows,
    Processor,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    TopologyError,
    WindowError,
)

NEAR = JoinWindows.of(5)


def grouped(b: Any) -> Any:
    return b.stream("a").group_by_key()


def both(*arguments: Any) -> None:
    """A function that takes anything."""


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no function": (lambda b: b.stream("a").filter("x"), "predicate of a filter must be a func"),
    "a function of a value": (lambda b: b.stream("a").filter(lambda v: v), "with 2 arguments, and"),
    "a key to map_values": (
        lambda b: b.stream("a").map_values(lambda k, v: v),
        "with one argument, and this function takes (k, v); process_values gives key and value",
    ),
    "no serde": (lambda b: b.stream("a", value="json"), "'json' is no serde. There are STRING"),
    "no serde of a sink": (lambda b: b.stream("a").to("c", key=str), "<class 'str'> is no serde"),
    "no serde of a store": (
        lambda b: b.add_state_store("s", value=5),
        "the store s: 5 is no serde",
    ),
    "topics in a list": (lambda b: b.stream(["a"]), "must be text, and is ['a']; several are"),
    "no name of a topic": (lambda b: b.stream("a b"), "the topic 'a b' has no legal name"),
    "no name of a sink": (lambda b: b.stream("a").to(""), "the topic '' has no legal name"),
    "no name of a store": (lambda b: grouped(b).count(store="a/b"), "store 'a/b' has no legal"),
    "a number for a name": (lambda b: b.stream("a").filter(both, name=5), "must be text, and is 5"),
    "a table merged": (
        lambda b: b.stream("a").merge(b.table("t")),
        "must be a KStream, and is a KTable; call to_stream() on a table",
    ),
    "a table for a stream": (
        lambda b: b.stream("a").join(b.table("t"), both),
        "join_table and join_global meet tables",
    ),
    "a join without windows": (
        lambda b: b.stream("a").join(b.stream("c"), both),
        "the windows of a join must be JoinWindows, and is None",
    ),
    "a stream for a table": (
        lambda b: b.stream("a").join_table(b.stream("c"), both),
        "the table of join_table must be a KTable, and is a KStream",
    ),
    "a table for a global one": (
        lambda b: b.stream("a").join_global(b.table("t"), both, both),
        "must be a GlobalKTable, and is a KTable; join_table meets",
    ),
    "a global table for a table": (
        lambda b: b.table("t").left_join(b.global_table("g"), both),
        "the other table must be a KTable, and is a GlobalKTable",
    ),
    "a foreign key of a value": (
        lambda b: b.table("t").join_foreign_key(b.table("u"), lambda v: v, both),
        "the foreign key is called with 2 arguments",
    ),
    "sessions for windows": (
        lambda b: grouped(b).windowed_by(SessionWindows.of(5)),
        "is a SessionWindows: windowed_by_session takes SessionWindows",
    ),
    "windows for sessions": (
        lambda b: grouped(b).windowed_by_session(TimeWindows.of(5)),
        "must be SessionWindows, and is a TimeWindows",
    ),
    "a number for windows": (lambda b: grouped(b).windowed_by(5), "TimeWindows, and is 5"),
    "an aggregate of nothing": (lambda b: grouped(b).aggregate(), "initializer of aggregate must"),
    "a value for an initializer": (lambda b: grouped(b).aggregate(0, both), "function, and is 0"),
    "sessions without a merger": (
        lambda b: grouped(b).windowed_by_session(SessionWindows.of(5)).aggregate(dict, both),
        "the merger of sessions must be a function, and is None",
    ),
    "a group of rows that only grows": (
        lambda b: b.table("t").group_by(both).reduce(both),
        "the subtractor of reduce must be a function",
    ),
    "an ungrouped stream": (
        lambda b: grouped(b).cogroup(both).cogroup(b.stream("c"), both),
        "must be a GroupedStream, and is a KStream; call group_by",
    ),
    "a processor that was made": (
        lambda b: b.stream("a").process(Processor()),
        "a processor must be a function",
    ),
    "a class that is no processor": (
        lambda b: b.stream("a").process(dict),
        "dict is no processor: derive it from Processor",
    ),
    "a table's store": (
        lambda b: (b.table("t", store="rows"), b.stream("a").process(Processor, "rows")),
        "the store rows is a table's, and no processor may have it: join the table",
    ),
    "stores in a list": (lambda b: b.stream("a").process(Processor, ["s"]), "given by its name"),
    "a second default branch": (
        lambda b: (lambda split: (split.default_branch(), split.default_branch()))(
            b.stream("a").split()
        ),
        "the split has its default branch already",
    ),
    "a branch behind the default one": (
        lambda b: (lambda split: (split.default_branch(), split.branch(both)))(
            b.stream("a").split()
        ),
        "no branch can follow the default branch",
    ),
    "a time limit that is text": (
        lambda b: b.table("t").suppress_until_time_limit("5"),
        "a whole number from 0 on, and is '5'",
    ),
    "a buffer for nothing": (
        lambda b: b.table("t").suppress_until_time_limit(5, records_max=0),
        "records_max must be a whole number from 1 on, and is 0",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_argument_is_refused_in_a_sentence(what: str) -> None:
    call, said = WRONG[what]
    with pytest.raises(TopologyError, match=re.escape(said)):
        call(StreamsBuilder())


@pytest.mark.parametrize(
    "meet",
    [
        lambda one, other: one.stream("a").merge(other.stream("a")),
        lambda one, other: one.stream("a").join(other.stream("a"), both, NEAR),
        lambda one, other: one.stream("a").join_table(other.table("a"), both),
        lambda one, other: one.table("a").join(other.table("a"), both),
        lambda one, other: grouped(one).cogroup(both).cogroup(grouped(other), both),
    ],
)
def test_what_two_builders_made_does_not_go_together(meet: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(TopologyError, match="made by another StreamsBuilder"):
        meet(StreamsBuilder(), StreamsBuilder())


@pytest.mark.parametrize("span", [timedelta(minutes=1), 1.5, "60"])
def test_windows_are_whole_milliseconds(span: Any) -> None:
    for kind in (TimeWindows, SessionWindows, JoinWindows):
        with pytest.raises(WindowError, match="must be a whole number of milliseconds"):
            kind.of(span)  # type: ignore[attr-defined]


def test_functions_whose_arguments_nobody_knows_are_taken() -> None:
    builder = StreamsBuilder()
    builder.stream("a").map_values(dict).map_values(int).to("c")
    assert builder.build().nodes
