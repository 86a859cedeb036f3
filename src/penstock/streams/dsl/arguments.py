"""What operations are given, looked at when it is given: a mistake is told where it was made.

Without this a wrong argument would fail with the first record, and on Spark in a worker.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from penstock.streams.plan.graph import Graph, TopologyError, legal_name

T = TypeVar("T")
_NUMBERS = {0: "no argument", 1: "one argument"}


def function(one: Any, takes: int, what: str, instead: str = "") -> None:
    """TopologyError unless it can be called with so many arguments."""
    if not callable(one):
        raise TopologyError(f"{what} must be a function, and is {one!r}")
    try:
        signature = inspect.signature(one)
    except (TypeError, ValueError):
        return  # Functions written in C do not tell what they take.
    try:
        signature.bind(*[None] * takes)
    except TypeError:
        number = _NUMBERS.get(takes, f"{takes} arguments")
        told = f"; {instead}" if instead else ""
        raise TopologyError(
            f"{what} is called with {number}, and this function takes {signature}{told}"
        ) from None


def of_value(one: Callable[..., Any], what: str, instead: str = "process_values") -> None:
    """The same for a function of a value alone, which many would give two arguments."""
    function(one, 1, what, f"{instead} gives key and value")


def member(one: Any, kind: type, graph: Graph, what: str, instead: str = "") -> None:
    """TopologyError unless it is of the class and was made by the same builder."""
    if not isinstance(one, kind):
        told = f"; {instead}" if instead else ""
        raise TopologyError(f"{what} must be a {kind.__name__}, and is {_named(one)}{told}")
    if getattr(one, "graph") is not graph:  # noqa: B009  (classes of the DSL all have one)
        raise TopologyError(f"{what} was made by another StreamsBuilder: use one for a topology")


def kind_of(one: Any, kind: type[T], what: str, instead: str) -> T:
    """The same; TopologyError unless it is of the class."""
    if isinstance(one, kind):
        return one
    raise TopologyError(f"{what} must be {kind.__name__}, and is {_named(one)}: {instead}")


def check_number(one: Any, least: int, what: str) -> None:
    """TopologyError for what is no whole number, or too small a one."""
    if not isinstance(one, int) or one < least:
        raise TopologyError(f"{what} must be a whole number from {least} on, and is {one!r}")


def processor(supplier: Any) -> None:
    """TopologyError for what makes no processor: it is asked for one in each task."""
    function(supplier, 0, "a processor", "give the class, or a function that makes one")
    if isinstance(supplier, type) and not hasattr(supplier, "process"):
        raise TopologyError(f"{supplier.__name__} is no processor: derive it from Processor")


def topic_names(topics: tuple[Any, ...]) -> None:
    """TopologyError for what cannot be the name of a topic."""
    for topic in topics:
        if not isinstance(topic, str):
            raise TopologyError(
                f"a topic's name must be text, and is {topic!r}; several are several arguments"
            )
        legal_name(topic, "the topic")


def _named(one: Any) -> str:
    """What it is, in few words: a stream's own text is its whole graph."""
    kind = type(one)
    return f"a {kind.__name__}" if kind.__module__.startswith("penstock.") else repr(one)
