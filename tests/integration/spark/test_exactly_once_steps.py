"""The sink dies at every request between the first row and the checkpoint, and starts again.

Each time the output, read by a reader of committed records, holds every row once, and no
transaction is left open for readers to wait on.
"""

import random
import subprocess

import pytest
from tests.conftest import IS_LONG
from tests.integration.spark.crashing import (
    QUERY_ID,
    Dead,
    Driver,
    Plug,
    committed,
    expected,
    left_open,
)
from tests.support.broker import BrokerProcess
from tests.support.fixtures import StartBroker
from tests.support.processes import python
from tests.support.waiting import eventually

from penstock.client.operations.group_offsets import group_offsets
from penstock.client.operations.transactions import fence_producers
from penstock.client.wire import transaction_control
from penstock.client.wire.cluster import ClusterClient
from penstock.spark.sink.transactional import DeliveryError, QueryNames

TASKS = 3


@pytest.fixture
def broker(start_broker: StartBroker) -> BrokerProcess:
    return start_broker({"num.partitions": "3"})


def requests_of_a_batch(
    monkeypatch: pytest.MonkeyPatch, address: str, name: str = "measured"
) -> list[str]:
    plug = Plug()
    driver = Driver(monkeypatch, address, name, plug, transactionalidprefix=name)
    driver.run(0, TASKS)
    monkeypatch.undo()
    return plug.seen


def crash_and_replay(
    monkeypatch: pytest.MonkeyPatch, address: str, topic: str, plugs: list[Plug], counts: list[int]
) -> None:
    """Batch 0 in as many lives as there are plugs, then batch 1 in the last life."""
    for plug, task_count in zip(plugs, counts, strict=True):
        driver = Driver(monkeypatch, address, topic, plug, transactionalidprefix=f"pre-{topic}")
        try:
            driver.run(0, task_count)
        except Dead:
            continue
    driver.run(1, counts[-1])
    monkeypatch.undo()
    assert committed(address, topic) == expected(2)
    eventually(lambda: not left_open(address), what="no open transaction")


def test_what_is_noted_for_replays_shows_nobody_a_lag(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(monkeypatch, broker.address, "noted", Plug(), transactionalidprefix="noted")
    driver.run(0, TASKS)
    monkeypatch.undo()
    names = QueryNames(prefix="noted", query_id=QUERY_ID)
    with ClusterClient(broker.address) as cluster:
        for group in (names.sink_group, names.decision_group):
            assert group_offsets(cluster, group, with_notes=True)
            assert group_offsets(cluster, group) == {}
    tool = [python(), "-m", "penstock.cli.main", "consumer-groups", "--all-groups", "--describe"]
    shown = subprocess.run(
        [*tool, "--bootstrap-server", broker.address], capture_output=True, text=True, timeout=120
    )
    assert shown.returncode == 0, shown.stderr
    assert not [line for line in shown.stdout.splitlines() if line.startswith("noted-")]


@pytest.mark.parametrize("is_sent_first", [False, True], ids=["before", "behind"])
def test_death_at_any_request_neither_loses_nor_doubles_a_row(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch, is_sent_first: bool
) -> None:
    steps = requests_of_a_batch(monkeypatch, broker.address)
    assert {"ProduceRequest", "TxnOffsetCommitRequest", "OffsetCommitRequest"} < set(steps)
    for at in range(len(steps) + 1):  # The last one lives until the commit, then is replayed.
        plugs = [Plug(at=at, is_sent_first=is_sent_first), Plug()]
        crash_and_replay(monkeypatch, broker.address, f"t{at}", plugs, [TASKS, TASKS])


def test_the_number_of_tasks_may_change_between_lives(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = requests_of_a_batch(monkeypatch, broker.address)
    for at in range(0, len(steps) + 1, 3):
        for after in (1, 5):
            plugs = [Plug(at=at, is_sent_first=True), Plug()]
            crash_and_replay(monkeypatch, broker.address, f"t{at}-{after}", plugs, [TASKS, after])


@pytest.mark.parametrize("is_sent_first", [False, True], ids=["before", "behind"])
def test_it_also_holds_on_brokers_without_epochs_per_transaction(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch, is_sent_first: bool
) -> None:
    with pytest.MonkeyPatch.context() as older:
        older.setattr(transaction_control, "_gives_epochs", lambda cluster, node: False)
        steps = requests_of_a_batch(monkeypatch, broker.address)
        assert {"AddPartitionsToTxnRequest", "AddOffsetsToTxnRequest"} < set(steps)
        for at in range(0, len(steps) + 1, 3):
            plugs = [Plug(at=at, is_sent_first=is_sent_first), Plug()]
            crash_and_replay(monkeypatch, broker.address, f"t{at}", plugs, [TASKS, 2])


def test_many_deaths_in_a_row_neither_lose_nor_double_a_row(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = len(requests_of_a_batch(monkeypatch, broker.address))
    chance = random.Random(None if IS_LONG else 7)
    for round_ in range(200 if IS_LONG else 10):
        lives = chance.randrange(2, 6)
        plugs = [
            Plug(at=chance.randrange(steps), is_sent_first=chance.random() < 0.5)
            for _ in range(lives)
        ]
        counts = [chance.randrange(1, 6) for _ in range(lives + 1)]
        crash_and_replay(monkeypatch, broker.address, f"t{round_}", [*plugs, Plug()], counts)


def die_after_the_decision(
    monkeypatch: pytest.MonkeyPatch, address: str, *, behind_ends: int
) -> QueryNames:
    """A life that ends once the decision is noted and some transactions are committed."""
    plug = Plug()
    steps = requests_of_a_batch(monkeypatch, address)
    ends = [at for at, name in enumerate(steps) if name == "EndTxnRequest"]
    plug.at, plug.is_sent_first = ends[behind_ends], False
    driver = Driver(monkeypatch, address, "out", plug)
    with pytest.raises(Dead):
        driver.run(0, TASKS)
    monkeypatch.undo()
    return QueryNames(prefix="penstock-spark", query_id=QUERY_ID)


def abort_by_timeout(address: str, names: QueryNames, tasks: range) -> None:
    """What the broker does to a transaction that is open for too long."""
    with ClusterClient(address) as cluster:
        fence_producers(cluster, [names.transactional_id(task) for task in tasks])


def test_what_the_broker_aborted_after_the_decision_is_written_again(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = die_after_the_decision(monkeypatch, broker.address, behind_ends=1)
    abort_by_timeout(broker.address, names, range(1, TASKS))
    driver = Driver(monkeypatch, broker.address, "out", Plug())
    driver.run(0, TASKS)
    driver.run(1, TASKS)
    monkeypatch.undo()
    assert committed(broker.address, "out") == expected(2)


def test_a_half_committed_batch_is_not_written_by_another_number_of_tasks(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = die_after_the_decision(monkeypatch, broker.address, behind_ends=1)
    abort_by_timeout(broker.address, names, range(1, TASKS))
    with pytest.raises(DeliveryError, match=r"committed in part.*tasks 1, 2 of 3"):
        Driver(monkeypatch, broker.address, "out", Plug()).run(0, TASKS + 2)
    Driver(monkeypatch, broker.address, "out", Plug()).run(0, TASKS)
    monkeypatch.undo()
    assert committed(broker.address, "out") == expected(1)


def test_a_batch_whose_transactions_were_all_aborted_is_written_by_any_number_of_tasks(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = die_after_the_decision(monkeypatch, broker.address, behind_ends=0)
    abort_by_timeout(broker.address, names, range(TASKS))
    Driver(monkeypatch, broker.address, "out", Plug()).run(0, 2)
    monkeypatch.undo()
    assert committed(broker.address, "out") == expected(1)


def test_a_transaction_that_timed_out_before_the_decision_fails_the_batch_as_a_whole(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(monkeypatch, broker.address, "out", Plug())
    messages = [driver.write(0, task, range(task, 30, TASKS)) for task in range(TASKS)]
    fence = messages[1].transaction.transactional_id
    with ClusterClient(broker.address) as cluster:
        fence_producers(cluster, [fence])
    with pytest.raises(DeliveryError, match=r"kafka\.transaction\.timeout\.ms=900000"):
        driver.writer.commit(messages, 0)
    driver.writer.abort(messages, 0)
    assert not left_open(broker.address)
    driver.run(0, TASKS)
    monkeypatch.undo()
    assert committed(broker.address, "out") == expected(1)


def test_an_abort_behind_a_failed_commit_leaves_what_was_decided(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_after_the_decision(monkeypatch, broker.address, behind_ends=1)
    driver = Driver(monkeypatch, broker.address, "out", Plug())
    messages = [driver.write(0, task, ()) for task in range(TASKS)]
    driver.writer.abort(messages, 0)
    monkeypatch.undo()
    assert committed(broker.address, "out") == expected(1)
    assert not left_open(broker.address)


def test_a_second_attempt_of_a_task_replaces_the_first(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(monkeypatch, broker.address, "out", Plug())
    driver.write(0, 0, range(0, 30, 2))  # Speculation: this attempt's message is not used.
    messages = [driver.write(0, task, range(task, 30, 2)) for task in range(2)]
    driver.writer.commit(messages, 0)
    monkeypatch.undo()
    assert committed(broker.address, "out") == expected(1)


def test_a_checkpoint_older_than_the_output_is_refused(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(monkeypatch, broker.address, "out", Plug())
    driver.run(0, TASKS)
    driver.run(1, TASKS)
    with pytest.raises(DeliveryError, match="checkpoint is older than the output"):
        driver.run(0, TASKS)


def test_a_timeout_beyond_what_the_broker_allows_is_told(
    start_broker: StartBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = start_broker({"transaction.max.timeout.ms": "60000"}).address
    with pytest.raises(DeliveryError, match=r"kafka\.transaction\.timeout\.ms=900000"):
        Driver(monkeypatch, address, "out", Plug()).run(0, 1)
    options = {"kafka.transaction.timeout.ms": "60000"}
    Driver(monkeypatch, address, "out", Plug(), **options).run(0, 1)
    monkeypatch.undo()
    assert committed(address, "out") == expected(1)
