"""GlobalKTable: a table every task has whole."""

from dataclasses import dataclass

from penstock.streams.plan.graph import Graph
from penstock.streams.words.kafka_words import KafkaWords


@dataclass(frozen=True, slots=True)
class GlobalKTable(KafkaWords):
    """A stream may look up any key in it, whatever its own key is."""

    graph: Graph
    node: str
    store: str
