"""Steps are functions: the same state and record give the same answer, and keys stand apart."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.streams_scripts import TOPOLOGIES, built, random_script

from penstock.streams import StreamRecord, StreamsTopology
from penstock.streams.driver.driver import TestDriver
from penstock.streams.plan.nodes import PlanNode
from penstock.streams.steps.contract import Arrival, Yielded
from penstock.streams.steps.user import UserStep
from penstock.streams.tasks.task import Task


@dataclass(slots=True)
class TakenTwice:
    """Calls a step twice with the same values, and looks whether the values stayed the same."""

    step: Any
    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.step, name)

    def take(self, arrival: Arrival) -> Yielded:
        before = repr(arrival)
        first, second = self.step.take(arrival), self.step.take(arrival)
        assert first == second
        assert repr(arrival) == before
        self.calls.append(before)
        return first


def watched(topology: StreamsTopology) -> tuple[StreamsTopology, list[TakenTwice]]:
    """The topology with each stateful step called twice."""
    watchers = []
    nodes: list[PlanNode] = []
    for node in topology.nodes:
        if node.state is not None and not isinstance(node.step, UserStep):
            watchers.append(TakenTwice(node.step))
            fields = {name: getattr(node, name) for name in node.__slots__}
            node = PlanNode(**{**fields, "step": watchers[-1]})
        nodes.append(node)
    plan = StreamsTopology(
        nodes=tuple(nodes), stores=topology.stores, internal_topics=topology.internal_topics
    )
    return plan, watchers


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_step_called_twice_says_the_same_and_changes_nothing(name: str) -> None:
    topology, watchers = watched(built(name))
    driver = TestDriver(topology)
    for seed in range(3):
        for step in random_script(name, seed):
            if step[0] == "P":
                key, value = (None if word == "~" else word for word in step[2:4])
                driver.pipe_input(step[1], key, value, int(step[4]))
    assert all(watcher.calls for watcher in watchers)


def test_state_lies_by_key_so_that_a_host_can_keep_it_apart() -> None:
    written: list[StreamRecord] = []
    task = Task(built("count"), lambda node, record: written.append(record))
    source = next(task.topology.sources)
    for key in ("a", "b", "a"):
        task.process(source, StreamRecord(key=key, value="v", timestamp_ms=1))
    (memory,) = task.memories.values()
    assert {key: state.value for _, key, state in memory.entries()} == {"a": 2, "b": 1}
