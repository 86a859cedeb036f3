"""Random histories of a group, with crashes between any two steps, against a simple model.

The model knows two things: the last offset of every partition that was answered with success, and
who was ever given a partition in a generation. The group must agree with it at every moment, also
after it was loaded from its log (I27, I28); and when the trouble ends, all live clients share all
partitions before long.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.groups.rig import Rig
from tests.unit.groups.simulated_client import PARTITIONS, SimulatedClient, Stage

from penstock.errors import ErrorCode
from penstock.groups.classic.group import ClassicGroup
from penstock.groups.classic.rebalance import ClassicState
from penstock.protocol.messages.describe_groups import DescribedGroup

CLIENTS_MAX = 6
CHOICE = st.integers(0, CLIENTS_MAX - 1)
PARTITION = st.sampled_from(PARTITIONS)
PRODUCER = st.integers(1, 2)


class GroupHistory(RuleBasedStateMachine):
    """One group, its clients, and what they were promised."""

    @initialize(delay_ms=st.sampled_from([0, 3000]))
    def begin(self, delay_ms: int) -> None:
        self.rig = Rig({"group.initial.rebalance.delay.ms": str(delay_ms)})
        self.clients: list[SimulatedClient] = []
        self.client_count = 0
        self.commit_count = 0
        self.committed: dict[int, tuple[int, int]] = {}  # Partition -> when, offset.
        self.pending: dict[int, dict[int, tuple[int, int]]] = {}
        self.owners: dict[tuple[int, int], str] = {}  # Generation and partition -> member.

    # What clients do

    @rule(instance=st.sampled_from([None, None, "i1", "i2"]), version=st.sampled_from([3, 8, 9]))
    def start_client(self, instance: str | None, version: int) -> None:
        if sum(client.is_alive for client in self.clients) < CLIENTS_MAX:
            self.client_count += 1
            version = version if instance is None else max(version, 5)
            name = f"c{self.client_count}"
            self.clients.append(
                SimulatedClient(self.rig, name, instance_id=instance, version=version)
            )

    @rule(choice=CHOICE)
    def step_client(self, choice: int) -> None:
        client = self._client(choice)
        if client is not None:
            self._step(client)

    @rule(rounds=st.integers(1, 12))
    def live_on(self, rounds: int) -> None:
        """Everybody does what they do, second by second."""
        for _ in range(rounds):
            for client in self._alive():
                self._step(client)
            self.rig.wait(1000)

    @rule(choice=CHOICE)
    def kill_client(self, choice: int) -> None:
        client = self._client(choice)
        if client is not None:
            client.is_alive = False

    @rule(choice=CHOICE)
    def client_leaves(self, choice: int) -> None:
        client = self._client(choice)
        if client is not None and client.stage is Stage.WORKING:
            client.leave()

    @rule(choice=CHOICE, offset=st.integers(0, 1000))
    def client_commits(self, choice: int, offset: int) -> None:
        client = self._client(choice)
        if client is not None and client.stage is Stage.WORKING and client.owned:
            partition = min(client.owned)
            if client.commit(partition, offset) is ErrorCode.NONE:
                self._note_commit(partition, offset)

    @rule(partition=PARTITION, offset=st.integers(0, 1000))
    def stranger_commits(self, partition: int, offset: int) -> None:
        code = self.rig.commit(offset, partition=partition)
        if code is ErrorCode.NONE:
            self._note_commit(partition, offset)
        else:
            assert self.rig.state() != "Empty" or self.rig.journal.error is not None

    @rule(partition=PARTITION, offset=st.integers(0, 1000), producer_id=PRODUCER)
    def commit_in_transaction(self, partition: int, offset: int, producer_id: int) -> None:
        code = self.rig.commit_in_transaction(offset, producer_id, partition=partition)
        if code is ErrorCode.NONE:
            self.commit_count += 1
            offsets = self.pending.setdefault(producer_id, {})
            offsets[partition] = (self.commit_count, offset)

    @rule(producer_id=PRODUCER, is_committed=st.booleans())
    def end_transaction(self, producer_id: int, is_committed: bool) -> None:
        self.rig.end_transaction(producer_id, is_committed=is_committed)
        for partition, commit in self.pending.pop(producer_id, {}).items():
            if is_committed and commit > self.committed.get(partition, (0, 0)):
                self.committed[partition] = commit

    # What happens to them

    @rule(elapsed_ms=st.sampled_from([1, 500, 3000, 6000, 10_000, 61_000]))
    def wait(self, elapsed_ms: int) -> None:
        self.rig.wait(elapsed_ms)

    @rule(is_broken=st.booleans())
    def change_journal(self, is_broken: bool) -> None:
        if is_broken:
            self.rig.break_journal()
        else:
            self.rig.mend_journal()

    @rule()
    def crash(self) -> None:
        before = self._stable_group()
        self.rig.reload()
        for client in self.clients:
            client.lose_connection()
        if before is not None:
            assert self.rig.shard.described("g") == before

    # What must hold

    @invariant()
    def no_offset_is_lost_or_moved(self) -> None:
        for partition in PARTITIONS:
            known = self.committed.get(partition)
            assert self.rig.offset(partition=partition) == (None if known is None else known[1])
            is_pending = any(partition in offsets for offsets in self.pending.values())
            assert self.rig.shard.offsets.is_pending("g", "t", partition) == is_pending

    @invariant()
    def nobody_waits_in_vain(self) -> None:
        waiting = [client for client in self.clients if client.waits]
        group = self.rig.shard.groups.get("g")
        if group is None:
            assert not waiting
            return
        assert isinstance(group, ClassicGroup)
        held: set[object] = {member.waiting_join for member in group.members}
        held |= {member.waiting_sync for member in group.members}
        for client in waiting:
            asked = (client.join_answer, client.sync_answer)
            assert any(answer.ticket in held for answer in asked if answer and answer.waits)

    @invariant()
    def every_state_has_a_way_out(self) -> None:
        group = self.rig.shard.groups.get("g")
        if not isinstance(group, ClassicGroup):
            return
        timers = self.rig.shard.timers
        if group.phase is ClassicState.PREPARING:
            assert timers.is_set(("g", "join"))
        if group.phase is ClassicState.COMPLETING:
            assert timers.is_set(("g", "sync"))
        for member in group.members:
            has_session = timers.is_set(("g", "session", member.member_id))
            assert has_session or member.waiting_join or member.waiting_sync
        for member_id in group.members.pending:
            assert timers.is_set(("g", "session", member_id))

    def teardown(self) -> None:
        """The trouble is over: all who live come together and share everything."""
        if not hasattr(self, "rig"):
            return
        self.rig.mend_journal()
        for _ in range(200):
            for client in self._alive():
                self._step(client)
            self.rig.wait(1000)
            if self._is_settled():
                break
        alive = self._alive()
        assert self._is_settled(), [(client.name, client.stage) for client in alive]
        owned = sorted(partition for client in alive for partition in client.owned)
        assert owned == (list(PARTITIONS) if alive else [])

    # The model

    def _client(self, choice: int) -> SimulatedClient | None:
        alive = self._alive()
        return alive[choice % len(alive)] if alive else None

    def _alive(self) -> list[SimulatedClient]:
        return [client for client in self.clients if client.is_alive]

    def _step(self, client: SimulatedClient) -> None:
        client.step()
        if client.stage is Stage.WORKING:
            for partition in client.owned:
                owner = self.owners.setdefault((client.generation, partition), client.identity)
                assert owner == client.identity, "two members own one partition in a generation"

    def _note_commit(self, partition: int, offset: int) -> None:
        self.commit_count += 1
        self.committed[partition] = (self.commit_count, offset)

    def _stable_group(self) -> DescribedGroup | None:
        return self.rig.shard.described("g") if self.rig.state() == "Stable" else None

    def _is_settled(self) -> bool:
        alive = self._alive()
        if not alive:
            return self.rig.state() in ("Empty", "Dead")
        if self.rig.state() != "Stable":
            return False
        ids = {member.member_id for member in self.rig.group().members}
        return {client.member_id for client in alive} == ids and all(
            client.stage is Stage.WORKING and client.generation == self.rig.group().generation
            for client in alive
        )


TestGroupHistory = GroupHistory.TestCase
TestGroupHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
