"""A consumer as groups see it: it joins, syncs, beats and commits, one step at a time.

It follows the classic protocol as real clients do, so that random histories are histories that
could happen. What the coordinator promises is checked by whoever steps the clients.
"""

from enum import Enum

from tests.unit.groups.rig import Answer, Rig

from penstock.errors import ErrorCode
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse

PARTITIONS = range(6)


class Stage(Enum):
    """Where a client is in the protocol."""

    OUT = "out"
    JOINING = "joining"
    JOINED = "joined"
    SYNCING = "syncing"
    WORKING = "working"


class SimulatedClient:
    """One process that consumes; `is_alive` is False once it was killed."""

    def __init__(self, rig: Rig, name: str, *, instance_id: str | None, version: int) -> None:
        self._rig = rig
        self.name = name
        self.instance_id = instance_id
        self.version = version
        self.stage = Stage.OUT
        self.member_id = ""
        self.generation = -1
        self.owned: frozenset[int] = frozenset()
        self.is_alive = True
        self.is_fenced = False
        self.join_answer: Answer[JoinGroupResponse] | None = None
        self.sync_answer: Answer[SyncGroupResponse] | None = None
        self._members: list[str] = []

    @property
    def identity(self) -> str:
        """Who owns partitions in the eyes of the group."""
        return self.instance_id or self.member_id

    @property
    def waits(self) -> bool:
        waiting = (self.join_answer, self.sync_answer)
        return any(answer is not None and answer.waits for answer in waiting)

    def step(self) -> None:
        """Send the next request, or take the answer to the last one."""
        if self.stage is Stage.OUT:
            self._join()
        elif self.stage is Stage.JOINING:
            self._take_join()
        elif self.stage is Stage.JOINED:
            self._sync()
        elif self.stage is Stage.SYNCING:
            self._take_sync()
        else:
            self._heed(self._beat())

    def lose_connection(self) -> None:
        """The coordinator is gone, and with it the answers that were due."""
        if self.stage in (Stage.JOINING, Stage.SYNCING, Stage.JOINED):
            self.stage = Stage.OUT
        self.join_answer = self.sync_answer = None

    def commit(self, partition: int, offset: int) -> ErrorCode:
        code = self._rig.commit(
            offset,
            self.member_id,
            self.generation,
            partition=partition,
            instance_id=self.instance_id,
        )
        if code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self._heed(code)
        return code

    def leave(self) -> None:
        self._rig.leave((self.member_id, self.instance_id))
        self._forget_everything()
        self.is_alive = False

    # Steps

    def _join(self) -> None:
        self.owned = frozenset()
        self.join_answer = self._rig.join(
            self.name, self.member_id, version=self.version, instance_id=self.instance_id
        )
        self.stage = Stage.JOINING

    def _take_join(self) -> None:
        assert self.join_answer is not None
        if self.join_answer.waits:
            return
        told = self.join_answer.told
        code = ErrorCode(told.error_code)
        if code is ErrorCode.NONE:
            self.stage = Stage.JOINED
            self.member_id, self.generation = told.member_id, told.generation_id
            self._members = [member.member_id for member in told.members]
            if told.skip_assignment:
                self._members = []
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.stage, self.member_id = Stage.OUT, told.member_id
        else:
            self._heed(code)
            self.stage = Stage.OUT

    def _sync(self) -> None:
        shares: dict[str, list[int]] = {member: [] for member in self._members}
        for partition in PARTITIONS if shares else ():
            shares[self._members[partition % len(self._members)]].append(partition)
        self.sync_answer = self._rig.sync(
            self.member_id,
            self.generation,
            {member: bytes(share) for member, share in shares.items()},
            instance_id=self.instance_id,
        )
        self.stage = Stage.SYNCING

    def _take_sync(self) -> None:
        assert self.sync_answer is not None
        if self.sync_answer.waits:
            return
        told = self.sync_answer.told
        if told.error_code:
            self._heed(ErrorCode(told.error_code))
            self.stage = Stage.OUT
            return
        self.stage = Stage.WORKING
        self.owned = frozenset(told.assignment)

    def _beat(self) -> ErrorCode:
        return self._rig.beat(self.member_id, self.generation, instance_id=self.instance_id)

    def _heed(self, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            return
        self.stage, self.owned = Stage.OUT, frozenset()
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self.generation = -1
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self.is_alive, self.is_fenced = False, True

    def _forget_everything(self) -> None:
        self.stage, self.member_id, self.generation = Stage.OUT, "", -1
        self.owned = frozenset()
        self.join_answer = self.sync_answer = None
