"""One worker's part in its group, with a group that is played."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from tests.support.waiting import eventually

from penstock.client.operations.membership import JoinedGroup
from penstock.connect.group import membership
from penstock.connect.group.membership import GroupRefused, WorkerMembership
from penstock.connect.group.place import OUTSIDE, GroupPlace
from penstock.connect.group.told import GroupAssignment, Held, decode_state, encode_assignment
from penstock.connect.settings import GroupTiming, WorkerSettings
from penstock.connect.store.status_records import TaskId
from penstock.errors import InconsistentGroupProtocol, NotCoordinator, UnknownMemberId

A, B = TaskId("a"), TaskId("b")


class PlayedGroup:
    """A group of one; `leads` says whether this worker is asked to share out."""

    def __init__(self) -> None:
        self.leads = True
        self.order = GroupAssignment(leader="m", leader_url="http://l/", config_offset=0)
        self.told: list[Held] = []
        self.trouble: Exception | None = None

    def join(self, metadata: bytes) -> JoinedGroup:
        if self.trouble is not None:
            raise self.trouble
        self.told.append(decode_state(metadata).held)
        members = {"m": metadata} if self.leads else None
        return JoinedGroup(member_id="m", generation_id=len(self.told), members=members)

    def sync(self, assignments: Mapping[str, bytes]) -> bytes:
        return assignments["m"] if assignments else encode_assignment(self.order)

    def beat(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def evict(self, is_stale: Callable[[bytes], bool]) -> int:
        return 0

    def forget(self) -> None:
        self.trouble = None

    def leave(self) -> None:
        return


class PlayedWork:
    """A worker that takes what it is given; `running` is what has not ended yet."""

    def __init__(self) -> None:
        self.place = OUTSIDE
        self.configured: Held = frozenset({A})
        self.running: Held = frozenset()
        self.config_offset = 3

    @property
    def held(self) -> Held:
        return self.running | (self.place.owned or frozenset())

    @property
    def is_settled(self) -> bool:
        return self.running <= (self.place.owned or frozenset())

    def catch_up(self) -> None:
        return

    def given_up(self, lost: Mapping[str, Held]) -> Held:
        return frozenset()

    def take(self, place: GroupPlace) -> None:
        self.place = place


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> PlayedGroup:
    played = PlayedGroup()

    class Cluster:
        def close(self) -> None:
            return

    monkeypatch.setattr(membership, "cluster_for", lambda _: Cluster())
    monkeypatch.setattr(membership, "GroupMembership", lambda *_: played)
    return played


@contextmanager
def member_of(work: PlayedWork, *, session_ms: int = 10_000) -> Iterator[WorkerMembership]:
    settings = WorkerSettings(
        given={},
        listeners=(),
        client={},
        group_timing=GroupTiming(session_ms=session_ms, heartbeat_ms=10),
    )
    member = WorkerMembership(settings, "http://me/", work)
    member.start()
    try:
        yield member
    finally:
        member.close()


def test_a_leader_shares_out_anew_when_there_is_something_else_to_run(group: PlayedGroup) -> None:
    work = PlayedWork()
    with member_of(work) as member:
        member.wait_until_member(threading.Event())
        eventually(lambda: work.place.owned == {A})
        assert work.place.is_leader
        assert work.place.owners == {A: "http://me/"}
        work.configured = frozenset({B})
        member.poke()
        eventually(lambda: work.place.owned == {B})


def test_what_was_revoked_is_told_as_held_until_it_is_over(group: PlayedGroup) -> None:
    work = PlayedWork()
    group.leads = False
    work.running = frozenset({A})
    group.order = GroupAssignment(
        leader="l",
        leader_url="http://l/",
        config_offset=0,
        assigned=frozenset({B}),
        revoked=frozenset({A}),
    )
    with member_of(work) as member:
        eventually(lambda: work.place.owned == {B})
        assert (work.place.is_leader, work.place.leader_url) == (False, "http://l/")
        assert group.told == [{A}]  # It does not join again while something of it still runs.
        work.running = frozenset({B})
        group.order = GroupAssignment(leader="l", leader_url="http://l/", config_offset=0)
        member.poke()
        eventually(lambda: group.told == [{A}, {B}])


def test_a_worker_that_is_unknown_joins_again_with_what_it_holds(group: PlayedGroup) -> None:
    work = PlayedWork()
    with member_of(work):
        eventually(lambda: work.place.owned == {A})
        group.trouble = UnknownMemberId("who?")
        eventually(lambda: len(group.told) > 1)
        assert group.told[-1] == {A}


def test_a_worker_that_cannot_reach_its_group_lets_everything_go(group: PlayedGroup) -> None:
    work = PlayedWork()
    with member_of(work, session_ms=50):
        eventually(lambda: work.place.owned == {A})
        group.trouble = NotCoordinator("away")
        eventually(lambda: work.place == OUTSIDE)
        group.trouble = None
        eventually(lambda: work.place.owned == {A})


def test_a_group_that_speaks_another_protocol_refuses_the_worker(group: PlayedGroup) -> None:
    group.trouble = InconsistentGroupProtocol("eager")
    with (
        member_of(PlayedWork()) as member,
        pytest.raises(GroupRefused, match="sessioned"),
    ):
        member.wait_until_member(threading.Event())
