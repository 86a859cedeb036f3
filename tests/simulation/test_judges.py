"""The judges that look on during a run notice what they are there for, and nothing else."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from tests.simulation.answers import Answers
from tests.simulation.authorship import Authorship
from tests.simulation.clock import Process, VirtualLoop
from tests.simulation.comebacks import Comebacks
from tests.simulation.followers import _within
from tests.simulation.history import History
from tests.simulation.network import host_name
from tests.simulation.oracle import Oracle
from tests.simulation.store import Ensemble, SimStore
from tests.simulation.trace import Trace

from penstock.cluster import znodes
from penstock.cluster.image.image import PartitionState
from penstock.cluster.znodes import FenceNode, FenceState, PreviousShutdown
from penstock.meta.store import Create, MultiFailed, Op, Set
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from penstock.replica import fetcher
from penstock.storage.log.leader_epochs import EpochStart

STATE = PartitionState(leader=1, leader_epoch=3, isr=(1, 2), min_isr=2)
PATH = znodes.state_path("t", 0)


class Stage:
    """A store with a topic, three machines without brokers, and whoever judges them."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.trace = Trace(loop.time)
        self.history = History(self.trace)
        self.loop = loop
        self.ensemble = Ensemble(loop, random.Random(1), self.trace)
        self.machines = [
            SimpleNamespace(
                broker_id=number,
                name=host_name(number),
                boots=1,
                broker=None,
                process=None,
                owes_loss=False,
                is_lossy=False,
            )
            for number in (1, 2, 3)
        ]
        self.served_observers: list[Any] = []
        self.operator = self.session("operator")
        for path in ("/brokers", "/brokers/topics", "/ext", "/ext/fence", "/config"):
            self.write(self.operator, Create(path))
        self.write(self.operator, Create("/config/topics"), Create(znodes.CONTROLLER_EPOCH, b"0"))

    def machine(self, number: int) -> SimpleNamespace:
        return self.machines[number - 1]

    def session(self, name: str) -> SimStore:
        return self.ensemble.open(Process(self.loop, name), timeout_s=3600)

    def write(self, store: SimStore, *ops: Op) -> None:
        self.ensemble.write(store, ops)

    def elect(self, number: int) -> SimStore:
        store = self.session(host_name(number))
        self.write(store, Set(znodes.CONTROLLER_EPOCH, b"1"))
        return store

    def make_topic(self, controller: SimStore) -> None:
        parents = ["/brokers/topics/t", "/brokers/topics/t/partitions"]
        node = znodes.TopicNode(
            topic_id=b"i" * 16, partitions={0: (1, 2, 3)}, adding={}, removing={}
        )
        self.write(controller, Create(parents[0], node.encode()), Create(parents[1]))
        self.write(controller, Create(parents[1] + "/0"))
        self.write(controller, Create(PATH, znodes.encode_state(STATE)))

    def change(self, store: SimStore, **parts: Any) -> None:
        self.write(store, Set(PATH, znodes.encode_state(STATE._replace(**parts))))

    def rules(self) -> list[str]:
        return [violation.split()[0] for violation in self.history.violations]


@pytest.fixture
def stage(loop: VirtualLoop) -> Stage:
    return Stage(loop)


# Who writes


def test_a_controller_writes_until_another_is_elected(stage: Stage) -> None:
    Authorship(stage)  # type: ignore[arg-type]
    first = stage.elect(1)
    stage.write(first, Create("/config/topics/t"))
    assert stage.rules() == []
    second = stage.elect(2)
    stage.write(second, Set("/config/topics/t", b"new"))
    assert stage.rules() == []
    stage.write(first, Set("/config/topics/t", b"stale"))
    assert stage.rules() == ["I13"]


def test_a_leader_writes_only_within_its_epoch(stage: Stage) -> None:
    Authorship(stage)  # type: ignore[arg-type]
    stage.make_topic(stage.elect(3))
    leader = stage.session(host_name(1))
    stage.change(leader, isr=(1,))
    assert stage.rules() == []
    stage.change(leader, leader_epoch=4)
    assert stage.rules() == ["I13"]
    stage.change(stage.session(host_name(2)), leader_epoch=4)
    assert stage.rules() == ["I13", "I13"]


def test_a_broker_closes_its_own_fence_and_opens_none(stage: Stage) -> None:
    Authorship(stage)  # type: ignore[arg-type]
    stage.elect(3)
    broker = stage.session(host_name(1))
    stage.write(broker, Create(znodes.fence_path(1), fence().encode()))
    assert stage.rules() == []
    stage.write(broker, Set(znodes.fence_path(1), fence(FenceState.ACTIVE).encode()))
    stage.write(broker, Create(znodes.fence_path(2), fence().encode()))
    assert stage.rules() == ["I13", "I13"]


def test_who_was_refused_reads_before_trying_again(stage: Stage) -> None:
    Authorship(stage)  # type: ignore[arg-type]
    stage.make_topic(stage.elect(3))
    leader = stage.session(host_name(1))
    for version, rules in ((7, []), (8, []), (8, ["I16"])):
        with pytest.raises(MultiFailed):
            stage.write(leader, Set(PATH, b"", version))
        assert stage.rules() == rules


# Who comes back


def fence(
    state: FenceState = FenceState.STARTING,
    prev_shutdown: PreviousShutdown = PreviousShutdown.CLEAN,
    incarnation: str = "a",
) -> FenceNode:
    return FenceNode(
        state=state,
        incarnation=incarnation,
        directory_ids=("d",),
        prev_shutdown=prev_shutdown,
        epoch=5,
    )


@pytest.fixture
def comebacks(stage: Stage) -> Comebacks:
    return Comebacks(stage, Oracle(stage))  # type: ignore[arg-type]


def lose_and_register(stage: Stage, prev_shutdown: PreviousShutdown) -> SimStore:
    broker = stage.session(host_name(1))
    stage.write(broker, Create(znodes.fence_path(1), fence().encode()))
    stage.machine(1).owes_loss = True
    stage.machine(1).boots += 1
    starting = fence(prev_shutdown=prev_shutdown, incarnation="b")
    stage.write(broker, Set(znodes.fence_path(1), starting.encode()))
    return broker


def test_a_loss_that_is_not_told_is_noticed(stage: Stage, comebacks: Comebacks) -> None:
    lose_and_register(stage, PreviousShutdown.LOSSY)
    assert stage.rules() == []
    starting = fence(prev_shutdown=PreviousShutdown.CRASH, incarnation="c")
    stage.write(stage.session(host_name(1)), Set(znodes.fence_path(1), starting.encode()))
    assert stage.rules() == ["I8"]


@pytest.mark.parametrize(("isr", "rules"), [((2, 3), []), ((1, 2), ["I8"])])
def test_who_lost_data_counts_nowhere_when_it_is_active_again(
    stage: Stage, comebacks: Comebacks, isr: tuple[int, ...], rules: list[str]
) -> None:
    controller = stage.elect(3)
    stage.make_topic(controller)
    lose_and_register(stage, PreviousShutdown.LOSSY)
    stage.change(controller, leader=2, leader_epoch=4, isr=isr)
    stage.history.violations.clear()  # Of the fence of others nothing is known here.
    opened = fence(FenceState.ACTIVE, incarnation="b")
    stage.write(controller, Set(znodes.fence_path(1), opened.encode()))
    assert stage.rules() == rules
    assert stage.machine(1).owes_loss is False


def test_opening_the_life_before_the_power_cut_settles_nothing(
    stage: Stage, comebacks: Comebacks
) -> None:
    lose_and_register(stage, PreviousShutdown.LOSSY)
    opened = fence(FenceState.ACTIVE, incarnation="a")
    stage.write(stage.elect(3), Set(znodes.fence_path(1), opened.encode()))
    assert stage.machine(1).owes_loss is True


def test_a_registration_that_was_never_opened_leads_nothing(
    stage: Stage, comebacks: Comebacks
) -> None:
    led = SimpleNamespace(is_leader=True)
    stage.machine(1).broker = SimpleNamespace(
        member=SimpleNamespace(broker_epoch=9),
        partitions=SimpleNamespace(hosted=lambda: [led]),
    )
    comebacks.look()
    assert stage.rules() == ["I14"]


def test_who_runs_and_is_not_registered_is_noticed(stage: Stage, comebacks: Comebacks) -> None:
    stage.machine(2).broker = SimpleNamespace(member=SimpleNamespace(broker_epoch=9))
    assert any("I15 broker-2" in wrong and "not there" in wrong for wrong in comebacks.unsettled())


# Who fetches


def test_a_fetch_counts_once_and_in_its_order(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher, "take_answer", fetcher.take_answer)
    Answers(stage)  # type: ignore[arg-type]
    process = Process(stage.loop, host_name(1))
    for epoch, code, rules in ((1, 0, []), (2, 0, []), (1, 71, []), (2, 0, ["I34"])):
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=2), session_id=7, session_epoch=epoch
        )
        stage.served_observers[0](process, request, FetchResponse(error_code=code))
        assert stage.rules() == rules


def test_epochs_are_compared_where_both_have_records() -> None:
    epochs = [EpochStart(1, 0), EpochStart(3, 10), EpochStart(4, 20)]
    assert _within(epochs, 0, 10) == [(1, 0)]
    assert _within(epochs, 12, 30) == [(3, 12), (4, 20)]
    assert _within(epochs, 20, 21) == [(4, 20)]
    assert _within(epochs, 5, 5) == []
