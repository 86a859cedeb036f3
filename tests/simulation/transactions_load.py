"""What clients of coordinators do in a run: who they are, what they need, when they are done."""

import asyncio
import random
from collections.abc import Callable

from tests.simulation.admin import Admin
from tests.simulation.clients import Client
from tests.simulation.cluster import World
from tests.simulation.coordinator_checks import (
    end_offset,
    judge_coordinators,
    judge_transactions,
    judge_worker,
    unfinished,
)
from tests.simulation.groups import GROUP_ID as MEMBERS
from tests.simulation.groups import GroupLedger, Member, look
from tests.simulation.groups_keeper import Keeper
from tests.simulation.groups_line import GROUP, Line
from tests.simulation.history import Place
from tests.simulation.oracle import Oracle
from tests.simulation.transactions import TIMEOUT_MS, Banker, Life, Lives
from tests.simulation.transactions_ledger import COMMITTED, Ledger
from tests.simulation.transactions_reader import Auditor
from tests.simulation.transactions_restless import Restless
from tests.simulation.transactions_worker import GROUP_ID as WORKERS
from tests.simulation.transactions_worker import Worker, committed_offset

from penstock.cluster.topics.names import CONSUMER_OFFSETS
from penstock.protocol.apis import ApiKey

BANK = "bank"
_BANK_PARTITIONS = 3
_MEMBERS = 2
_SAMPLE_S = 0.05
_BANKERS = 2
_RESTLESS = 3
# Between brokers. A slow question lets a marker overtake it, a slow answer the end of what it
# tells of.
_SLOW_APIS_S: tuple[dict[ApiKey, float], ...] = (
    {},
    {ApiKey.ADD_PARTITIONS_TO_TXN: 0.1},
    {ApiKey.ADD_PARTITIONS_TO_TXN: 0.4},
    {ApiKey.ADD_PARTITIONS_TO_TXN: 0.1, ApiKey.WRITE_TXN_MARKERS: 0.1},
)
# All of one partition of the offsets, or of both: they differ in the last bit of their hashes.
_KEEPERS = (("k0", "k2"), ("k1", "k3"), ("k0", "k1"))
_END_S = TIMEOUT_MS / 1000 + 60  # I24.

# Short, so that both sides of each timeout are met in a run.
SETTINGS = {
    "min.insync.replicas": "2",  # What the topic of the offsets gets.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "300",
}

MakeClient = Callable[[str], Client]


def is_coordinated(seed: int) -> bool:
    """Every third run is about coordinators."""
    return seed % 3 == 2


class CoordinatorLoad:
    def __init__(self, world: World, make_client: MakeClient, source: Place) -> None:
        self._world = world
        self._make_client = make_client
        self._source = source
        self._rng = random.Random(f"coordinators {world.seed}")
        self.ledger = Ledger(world.history)
        self.group = GroupLedger(world.history, BANK, _BANK_PARTITIONS)
        self._members: list[Member] = []
        self._keepers: list[Keeper] = []
        self._lives: list[Lives] = []
        self._restless: list[Restless] = []
        self._auditors: list[Auditor] = []
        self._places = [(BANK, number) for number in range(_BANK_PARTITIONS)]

    @property
    def committed_count(self) -> int:
        return sum(deal.outcome == COMMITTED for deal in self.ledger.deals)

    async def make_topics(self, admin: Admin) -> None:
        await admin.create(
            BANK,
            partitions=_BANK_PARTITIONS,
            replicas=3,
            settings={"min.insync.replicas": "2"},
        )

    async def watch(self) -> None:
        """Looks on while all goes on."""
        while True:
            await asyncio.sleep(_SAMPLE_S)
            judge_coordinators(self._world)

    def start(self) -> None:
        self._world.network.slow_apis_s = self._rng.choice(_SLOW_APIS_S)
        for number in range(_RESTLESS):
            self._start_restless(f"n{number}")
        for number in range(_BANKERS):
            self._start(f"t{number}", self._banker)
        self._start("worker", self._worker)
        for number in range(_MEMBERS):
            client = self._make_client(f"m{number}")
            member = Member(client, self.group)
            self._members.append(member)
            client.run(member.run)
        for name in self._rng.choice(_KEEPERS):
            client = self._make_client(name)
            ledger = GroupLedger(self._world.history, BANK, _BANK_PARTITIONS)
            keeper = Keeper(client, ledger, group_id=name)
            keeper.mind(self._world.ensemble)
            self._keepers.append(keeper)
            client.run(keeper.run)
        for number, place in enumerate(self._places):
            client = self._make_client(f"a{number}")
            auditor = Auditor(client, place, self.ledger)
            self._auditors.append(auditor)
            client.run(auditor.run)

    def _start(self, name: str, make: Callable[[Client, int, bool], Life]) -> None:
        client = self._make_client(name)
        is_v2 = self._rng.random() < 0.6
        lives = Lives(client, lambda number: make(client, number, is_v2))
        self._lives.append(lives)
        client.run(lives.run)

    def _start_restless(self, name: str) -> None:
        client = self._make_client(name)
        is_v2 = self._rng.random() < 0.75
        restless = Restless(
            client, self.ledger, is_v2=is_v2, places=self._places, source=self._source
        )
        self._restless.append(restless)
        client.run(restless.run)

    def _banker(self, client: Client, number: int, is_v2: bool) -> Life:
        life = Banker(client, self.ledger, client.name, number, is_v2=is_v2)
        life.places = self._places
        life.impatience = 0.25
        return life

    def _worker(self, client: Client, number: int, is_v2: bool) -> Life:
        return Worker(
            client,
            self.ledger,
            client.name,
            number,
            is_v2=is_v2,
            source=self._source,
            targets=self._places,
        )

    # The end

    async def finish(self, oracle: Oracle) -> None:
        """I24: all that was begun ends, and clients of a healthy cluster are answered."""
        producers = [*self._lives, *self._restless]
        if not await self._until(lambda: all(each.is_over for each in producers), 60):
            self._world.history.violate("I32 transactional producers were never answered")
        for bankers in self._lives[:_BANKERS]:
            await bankers.prove()
        if not await self._until(self._is_group_whole, 60):
            told = [(m.generation, m.owned) for m in self._members]
            self._world.history.violate(f"I28 the group is not stable: {told}")
        for member in self._members:
            member.is_stopping = True
        stored = [place for place in oracle.places() if place[0] == CONSUMER_OFFSETS]
        places = [*self._places, *stored]
        if not await self._until(lambda: not unfinished(self._world, oracle, places), _END_S):
            left = unfinished(self._world, oracle, places)
            self._world.history.violate(f"I24 not ended after {_END_S} s: {left[:3]}")
            return
        async with asyncio.timeout(60):
            # All at one moment: leaders still change, and a new one may know less than the last.
            while behind := self._auditors_behind(oracle):
                for auditor in behind:
                    await auditor.poll()

    def _auditors_behind(self, oracle: Oracle) -> list[Auditor]:
        ends = [end_offset(self._world, oracle, place) for place in self._places]
        both = zip(ends, self._auditors, strict=True)
        return [auditor for end, auditor in both if end is None or auditor.position < end]

    def _is_group_whole(self) -> bool:
        """Whether all are in one generation and share everything."""
        generations = {member.generation for member in self._members}
        owned = sorted(partition for member in self._members for partition in member.owned)
        return len(generations) == 1 and owned == list(self.group.partitions)

    async def _until(self, is_done: Callable[[], bool], timeout_s: float) -> bool:
        deadline_s = self._world.loop.time() + timeout_s
        while not is_done():
            if self._world.loop.time() > deadline_s:
                return False
            await asyncio.sleep(0.25)
        return True

    async def judge(self, oracle: Oracle) -> None:
        history = self._world.history
        judge_transactions(self._world, oracle, self.ledger, self._places)
        line = Line(self._make_client("judge"), WORKERS, GROUP)
        async with asyncio.timeout(60):
            committed = await committed_offset(line, self._source)
            line = Line(line.client, MEMBERS, GROUP)
            for partition in self.group.partitions:
                await look(line, self.group, partition)
            for proving in (*self._keepers, *self._restless):
                await proving.prove()
        judge_worker(history, self.ledger, self._source, committed)
