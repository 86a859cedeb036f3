"""Random histories with crashes between any two steps, held against what transactions promise.

Several producers, some with the same transactional id, in both protocol versions; answers get
lost, requests come again and late, transactions time out, ids expire, and the broker dies at its
appends and finds only what its logs hold. At the end:

- every transaction has ended, in the coordinator and in every partition;
- of each attempt, all or nothing is seen by readers of committed records, and nothing twice;
- what was seen at any time is seen for good;
- the epochs of an id never go back, and no old owner commits after a new one took over.
"""

import asyncio
import os
import tempfile
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.transactions.clients import TIMEOUT_MS, Attempt, End, Owned, Producer
from tests.unit.transactions.virtual_time import run_virtually
from tests.unit.transactions.world import DATA, STATE, Crashed, World

from penstock.transactions.stored import read_record
from penstock.transactions.transaction import TV2, ProducerIdentity, Transaction, TransactionState

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
IDS = ("one", "two")


class History:
    """One run of the world, and everything that was learnt from it."""

    def __init__(self, directory: Path, random: Random, *, is_replicated: bool) -> None:
        self.world = World(directory, random, is_replicated=is_replicated)
        self.random = random
        self.attempts: list[Attempt] = []
        self.owned: list[Owned] = []
        self.seen: dict[tuple[str, int], list[bytes]] = {key: [] for key in DATA}

    async def run(self) -> None:
        self.world.start()
        self.world.crash_chance = self.random.choice([0.0, 0.01, 0.05])
        chaos = asyncio.ensure_future(self._disturb())
        producers = [
            Producer(
                self.world,
                f"p{number}",
                self.random.choice(IDS),
                is_version_2=self.random.random() < 0.5,
                attempts=self.attempts,
                owned=self.owned,
                logged=lambda: sum(1 for _ in self.world.records(STATE)),
            )
            for number in range(self.random.randint(1, 4))
        ]
        await asyncio.gather(*(p.run(self.random.randint(1, 4)) for p in producers))
        self.world.crash_chance = 0.0
        await asyncio.sleep(4.0)  # Until the last late request has come.
        chaos.cancel()
        await asyncio.wait([chaos])
        if not chaos.cancelled():
            chaos.result()
        await self._settle()

    async def _disturb(self) -> None:
        """The follower's pace, timeouts, expiry, and readers who look again and again."""
        while True:
            await asyncio.sleep(self.random.random() * 0.2)
            if self.world.is_replicated:
                self.world.confirm(chance=0.4)
            if self.random.random() < self.world.crash_chance:
                self.world.crash()
            with suppress(Crashed):
                self._let_time_act()
            self.look()

    def _let_time_act(self) -> None:
        server = self.world.server
        if server is not None and self.random.random() < 0.3:
            server.coordinator.abort_timed_out()
        if server is not None and self.random.random() < 0.05:
            server.coordinator.forget_expired()

    def look(self) -> None:
        """Readers of committed records must never have to take anything back."""
        for key in DATA:
            now = self.world.committed(key)
            before = self.seen[key]
            assert now[: len(before)] == before, f"{key} was {before} and is {now}"
            self.seen[key] = now

    async def _settle(self) -> None:
        """What is open times out, what is decided is told everywhere, and nothing else happens."""
        for _ in range(10):
            await asyncio.sleep(TIMEOUT_MS / 1000)
            self.world.confirm()
            if self.world.server is not None:
                self.world.server.coordinator.abort_timed_out()

    # What must hold

    def check(self) -> None:
        self.look()
        self._check_everything_ended()
        self._check_all_or_nothing()
        self._check_epochs()
        self._check_fencing()

    def _check_everything_ended(self) -> None:
        assert self.world.server is not None
        for known in self.world.server.coordinator.transactions():
            assert known.state in (
                TransactionState.EMPTY,
                TransactionState.COMPLETE_COMMIT,
                TransactionState.COMPLETE_ABORT,
            ), known
        for key in DATA:
            assert self.world.open_transactions(key) == {}

    def _check_all_or_nothing(self) -> None:
        counts = {key: Counter(values) for key, values in self.seen.items()}
        for attempt in self.attempts:
            seen = [counts[where][value] for where, value in attempt.values]
            allowed = {
                End.COMMITTED: ({1},),
                End.ABORTED: ({0},),
                End.NEVER_ASKED: ({0},),
                End.UNKNOWN: ({0}, {1}),
            }[attempt.end]
            assert set(seen) in (*allowed, set()), (attempt, seen)

    def _check_epochs(self) -> None:
        for key in DATA:
            epochs: dict[int, int] = {}
            for header, _ in self.world.batches(key):
                known = epochs.setdefault(header.producer_id, header.producer_epoch)
                assert header.producer_epoch >= known, (key, header)
                epochs[header.producer_id] = header.producer_epoch
        for states in self._logged_by_id().values():
            for before, after in pairwise(states):
                assert _order(after) >= _order(before), (before, after)

    def _check_fencing(self) -> None:
        """Once an identity was handed out, only it and later ones decide to commit."""
        by_id = self._logged_by_id(with_position=True)
        for owned in self.owned:
            for at, state in by_id[owned.transactional_id]:
                if (
                    at < owned.logged
                    or state is None
                    or state.state is not TransactionState.PREPARE_COMMIT
                ):
                    continue
                took_part = state.identity
                if state.client_version == TV2:
                    took_part = ProducerIdentity(state.producer_id, state.producer_epoch - 1)
                assert _order_of(took_part) >= _order_of(owned.identity), (owned, state)

    def _logged_by_id(self, *, with_position: bool = False) -> dict:  # type: ignore[type-arg]
        logged: dict[str, list[object]] = {}
        for at, record in enumerate(self.world.records(STATE)):
            found = read_record(record.key, record.value)
            assert found is not None
            transactional_id, state = found
            if with_position:
                logged.setdefault(transactional_id, []).append((at, state))
            elif state is not None:
                logged.setdefault(transactional_id, []).append(state)
        return logged


def _order(state: Transaction) -> tuple[int, int]:
    return _order_of(state.identity)


def _order_of(identity: ProducerIdentity) -> tuple[int, int]:
    """Producer ids are given out in order, so a newer one is larger."""
    return identity.producer_id, identity.producer_epoch


@pytest.mark.parametrize("is_replicated", [False, True])
@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=1000 if os.environ.get("PENSTOCK_LONG") == "1" else 30, deadline=None)
def test_transactions_keep_their_promises(is_replicated: bool, seed: int) -> None:
    play(seed, is_replicated=is_replicated)


def play(seed: int, *, is_replicated: bool) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        history = History(Path(directory), Random(seed), is_replicated=is_replicated)
        run_virtually(history.run())
        history.check()
