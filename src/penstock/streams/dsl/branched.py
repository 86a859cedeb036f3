"""The branches of a split stream, while they are named one by one."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.streams.dsl.arguments import function
from penstock.streams.plan.graph import NodeDraft, TopologyError
from penstock.streams.steps.stateless import PassOn
from penstock.streams.words.kafka_words import KafkaWords

if TYPE_CHECKING:
    from penstock.streams.dsl.stream import KStream

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class BranchedKStream(KafkaWords, Generic[K, V]):
    """The branches of a split; a record goes to the first whose predicate takes it."""

    stream: "KStream[K, V]"
    draft: NodeDraft
    predicates: list[Callable[[Any, Any], bool]]
    made: "dict[str, KStream[K, V]]" = field(default_factory=dict)
    is_whole: bool = False  # It has a default branch.

    def branch(
        self, predicate: Callable[[K, V], bool], *, name: str | None = None
    ) -> "BranchedKStream[K, V]":
        """One more branch."""
        if self.is_whole:
            raise TopologyError("no branch can follow the default branch, which takes all")
        self._add(predicate, name or str(len(self.draft.branches) + 1))
        return self

    def default_branch(self, *, name: str | None = None) -> "dict[str, KStream[K, V]]":
        """The branch of the records that no predicate took; all branches by name."""
        if self.is_whole:
            raise TopologyError("the split has its default branch already")
        self._add(lambda key, value: True, name or "0")
        self.is_whole = True
        return self.made

    def no_default_branch(self) -> "dict[str, KStream[K, V]]":
        """Drop what no predicate took; all branches by name."""
        return self.made

    def _add(self, predicate: Callable[[K, V], bool], suffix: str) -> None:
        function(predicate, 2, "the predicate of a branch")
        self.stream.graph.number += 1  # Kafka Streams draws a number here and does not use it.
        child = NodeDraft(
            name=self.draft.name + suffix, parents=[self.draft.name], make=lambda d: PassOn()
        )
        self.stream.graph.add(child)
        self.draft.branches.append(child.name)
        self.predicates.append(predicate)
        self.made[child.name] = replace(self.stream, node=child.name)
