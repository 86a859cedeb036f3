"""Judgement of transactions and groups: what was told, what was read and what the logs hold."""

from collections import Counter
from collections.abc import Iterable, Sequence

from tests.simulation.checks import committed_bytes, split
from tests.simulation.cluster import World
from tests.simulation.history import History, Place
from tests.simulation.oracle import Oracle
from tests.simulation.transactions_ledger import ABORTED, COMMITTED, Deal, Ledger

from penstock.coordination.led_shard import LedShard
from penstock.errors import ProtocolError
from penstock.groups.coordinator import GroupCoordinator
from penstock.groups.shard import GroupShard
from penstock.records.batch import read_records
from penstock.records.control import ControlType, read_marker
from penstock.replica.partition import Partition
from penstock.transactions.transaction import TransactionState

_ENDED = (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def unfinished(world: World, oracle: Oracle, places: Iterable[Place]) -> list[str]:
    """I24: the transactions that have not ended, as coordinators and as partitions see it."""
    wrong = []
    for place in places:
        leader = _leader(world, oracle, place)
        if leader is None:
            wrong.append(f"nobody leads {place}")
        elif leader.log.last_stable_offset < leader.log.high_watermark:
            wrong.append(
                f"{place} is stable to {leader.log.last_stable_offset} of "
                f"{leader.log.high_watermark}: {leader.log.producer_state.table.open}"
            )
    for machine in world.machines:
        if machine.broker is not None:
            coordinator = machine.broker.transactions.coordinator
            if coordinator.is_loading:
                wrong.append(f"{machine.name} is loading transactions")
            for led in coordinator.loaded_shards():
                known = led.shard.transactions.values()
                wrong += [f"{machine.name}: {one}" for one in known if one.state not in _ENDED]
    return wrong


def judge_coordinators(world: World) -> None:
    """I29: whoever would answer for a partition leads it, in the epoch it was loaded in."""
    for machine in world.machines:
        if machine.broker is None:
            continue
        groups = machine.broker.groups
        transactions = machine.broker.transactions.coordinator
        found = [led.log for led in groups._led.values() if _is_ready(groups, led)]
        found += [led.log for led in transactions.loaded_shards()]
        for log in found:
            partition = log.partition
            if not partition.is_leader or partition.leader_epoch != log.leader_epoch:
                world.history.violate(f"I29 {machine.name} answers for {log}: {partition}")


def _is_ready(groups: GroupCoordinator, led: LedShard[GroupShard]) -> bool:
    try:
        return groups._ready(led.log.partition.partition) is led
    except ProtocolError:
        return False


def _leader(world: World, oracle: Oracle, place: Place) -> Partition | None:
    state = oracle.state(place)
    if state is None or state.leader < 0:
        return None
    broker = world.machine(state.leader).broker
    found = broker.partitions.get(*place) if broker is not None else None
    return found if found is not None and found.is_leader else None


def end_offset(world: World, oracle: Oracle, place: Place) -> int | None:
    """Where a reader is at the end; None: nobody leads just now, and nobody can say."""
    leader = _leader(world, oracle, place)
    return None if leader is None else leader.log.high_watermark


def judge_transactions(
    world: World, oracle: Oracle, ledger: Ledger, places: Sequence[Place]
) -> None:
    """Needs a cluster that has settled, and readers that have read to the end."""
    history = world.history
    for place in places:
        leader = _leader(world, oracle, place)
        if leader is None:
            history.violate(f"I32 nobody leads {place}")
            continue
        _judge_partition(history, place, committed_bytes(leader), ledger.seen.get(place, {}))
    judge_deals(ledger)


def judge_deals(ledger: Ledger) -> None:
    """Whether what was told of each transaction is what readers of committed records got."""
    counts = Counter(value for seen in ledger.seen.values() for value in seen.values())
    for deal in ledger.deals:
        _judge_deal(ledger.history, deal, counts)


def _judge_partition(
    history: History, place: Place, content: bytes, seen: dict[int, bytes]
) -> None:
    """I23: what readers of committed records got is what commit markers stand behind."""
    committed: dict[int, bytes] = {}
    waiting: dict[int, dict[int, bytes]] = {}  # Of open transactions, by producer.
    for header, batch in split(content):
        records = list(read_records(batch, bytes_max=1 << 20))
        if not header.is_control:
            found = {record.offset: bytes(record.value or b"") for record in records}
            waiting.setdefault(header.producer_id, {}).update(found)
            continue
        marker = read_marker(records[0])
        ended = waiting.pop(header.producer_id, {})
        if marker is not None and marker.type is ControlType.COMMIT:
            committed |= ended
    for producer_id, left in waiting.items():
        history.violate(f"I24 {place}: producer {producer_id} never ended {left}")
    for offset in committed.keys() | seen.keys():
        stands, read = committed.get(offset), seen.get(offset)
        if stands != read:
            history.violate(f"I23 {place} offset {offset}: committed {stands!r}, read {read!r}")


def _judge_deal(history: History, deal: Deal, counts: Counter[bytes]) -> None:
    """I22: all of a transaction, once, or nothing."""
    found = {value: counts[value] for value in deal.values}
    if any(count > 1 for count in found.values()):
        history.violate(f"I22 {deal.name} is doubled: {found}")
    there = sum(map(bool, found.values()))
    if deal.outcome == ABORTED and there:
        history.violate(f"I22 {deal.name} is aborted, and read were {found}")
    elif deal.outcome == COMMITTED and there < len(found):
        history.violate(f"I22 {deal.name} is committed, and read were only {found}")
    elif 0 < there < len(found):
        history.violate(f"I22 {deal.name} is torn: {found}")


def is_seen(ledger: Ledger, deal: Deal) -> bool:
    """Whether its records count; all or none do, or `judge_transactions` has complained."""
    return any(value in ledger.seen.get(place, {}).values() for value, place in deal.values.items())


def judge_worker(history: History, ledger: Ledger, source: Place, committed: int) -> None:
    """Each record of the input below the committed offset is answered once, in its order."""
    answered: list[int] = []
    ends = [0]
    for deal in ledger.deals:
        if deal.inputs and is_seen(ledger, deal):
            answered += deal.inputs
            ends.append(deal.next_input)
    trimmed = history.trimmed.get(source, 0)  # What is deleted unread is never answered.
    expected = {at for at in history.seen[source] if trimmed <= at < max(committed, 0)}
    twice = [at for at, count in Counter(answered).items() if count > 1]
    missing = sorted(expected - set(answered))
    excess = sorted(at for at in set(answered) - expected if at >= trimmed)
    if twice or missing or excess:
        history.violate(
            f"I22 exactly once: committed {committed}, answered twice {twice}, never {missing}, "
            f"too many {excess}"
        )
    if max(ends) != max(committed, 0):
        history.violate(f"I27 answered up to {max(ends)}, the offset committed is {committed}")
