"""One worker's part in its group: a thread that joins, beats, and obeys or assigns.

The group is one of protocol type `connect` that speaks Apache's `sessioned` protocol, so tools
describe it as Connect's, and workers of Apache's can be members. A worker that cannot reach the
group for as long as a session lasts must let its work go, because others run it by then.
"""

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from penstock.client.errors import ClientError
from penstock.client.operations.membership import GroupMembership, GroupProtocol, JoinedGroup
from penstock.client.wire.raw_cluster import cluster_for
from penstock.connect.group.assigning import GroupWorker, LeaderMemory, share_out
from penstock.connect.group.place import OUTSIDE, GroupPlace
from penstock.connect.group.told import (
    PROTOCOL,
    PROTOCOL_TYPE,
    ForeignWorker,
    GroupAssignment,
    Held,
    WorkerState,
    decode_assignment,
    decode_state,
    encode_assignment,
    encode_state,
)
from penstock.connect.settings import WorkerSettings
from penstock.connect.store.status_records import TaskId
from penstock.errors import (
    IllegalGeneration,
    InconsistentGroupProtocol,
    PenstockError,
    RebalanceInProgress,
    RetriableError,
    UnknownMemberId,
)

log = logging.getLogger("penstock.connect")

_PAUSE_S = 0.5


class GroupRefused(PenstockError):
    """The group does not take this worker."""


class GroupWork(Protocol):
    """The worker behind a member."""

    @property
    def held(self) -> Held:
        """What it runs or is to run."""

    @property
    def configured(self) -> Held:
        """All that the group is to run."""

    @property
    def config_offset(self) -> int:
        """How far it has read the config topic."""

    @property
    def is_settled(self) -> bool:
        """Whether it runs nothing that it is not to run."""

    def catch_up(self) -> None:
        """Read what others have written, as far as that is possible."""

    def given_up(self, lost: Mapping[str, Held]) -> Held:
        """Which of this the worker at that URL said it runs no more."""

    def take(self, place: GroupPlace) -> None:
        """Run this from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """What came out of one rebalance."""

    covered: Held | None  # What was shared out; None: another worker leads.
    must_rejoin: bool  # Once what was revoked is over.
    due_s: float | None  # When the group must come together again.


class WorkerMembership:
    """`wait_until_member` says when this worker is one of the group."""

    def __init__(self, settings: WorkerSettings, url: str, work: GroupWork) -> None:
        timing = settings.group_timing
        self._url = url
        self._work = work
        self._beat_s = timing.heartbeat_ms / 1000
        self._session_s = timing.session_ms / 1000
        self._delay_ms_max = timing.delay_ms_max
        self._is_member = threading.Event()
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._cluster = cluster_for(settings.client)
        self._group = GroupMembership(
            self._cluster,
            GroupProtocol(
                group_id=settings.group_id,
                protocol_type=PROTOCOL_TYPE,
                protocol=PROTOCOL,
                session_timeout_ms=timing.session_ms,
                rebalance_timeout_ms=timing.rebalance_ms,
            ),
        )
        self._memory = LeaderMemory()
        self._led_generation = -1  # The last one that this worker led.
        self._owned: Held = frozenset()
        self._heard_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="connect-member", daemon=True)
        self.failure: PenstockError | None = None

    def start(self) -> None:
        """Join; a predecessor at our address is dead, since the address is ours."""
        self._thread.start()

    def wait_until_member(self, call_off: threading.Event) -> None:
        """Return when this worker is a member, or the wait was called off."""
        while not self._is_member.wait(_PAUSE_S) and not call_off.is_set():
            if self.failure is not None:
                raise self.failure

    def poke(self) -> None:
        """Look whether the group must come together; from any thread."""
        self._wake.set()

    def close(self) -> None:
        """Leave, so that others take over at once."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        with suppress(PenstockError):
            self._group.leave()
        self._cluster.close()

    def _run(self) -> None:
        with suppress(PenstockError):
            self._group.evict(self._is_predecessor)
        while not self._stopping.is_set():
            try:
                self._take_part()
            except RebalanceInProgress:
                continue
            except (UnknownMemberId, IllegalGeneration) as error:
                log.warning("The group does not know this worker any more: %s", error)
                self._group.forget()
            except (RetriableError, ClientError, ForeignWorker) as error:
                log.warning("No part in the group of workers for now: %s", error)
                self._let_go_if_silent()
                self._stopping.wait(_PAUSE_S)
            except PenstockError as error:
                self._fail(error)
                return

    def _is_predecessor(self, told: bytes) -> bool:
        with suppress(ForeignWorker):
            return decode_state(told).url == self._url
        return False

    def _take_part(self) -> None:
        """One generation of the group, until its next rebalance."""
        held = self._work.held
        state = WorkerState(url=self._url, config_offset=self._work.config_offset, held=held)
        joined = self._group.join(encode_state(state))
        configured: Held | None = None
        orders: dict[str, GroupAssignment] = {}
        if joined.members is not None:
            configured, orders = self._lead(joined)
        told = self._group.sync({member: encode_assignment(one) for member, one in orders.items()})
        self._heard_s = time.monotonic()
        round_ = self._obey(joined, decode_assignment(told), configured, held)
        while not self._stopping.is_set() and not self._is_due(round_):
            self._wait_and_beat(round_)

    def _wait_and_beat(self, round_: _Round) -> None:
        now_s = time.monotonic()
        until_s = min(self._heard_s + self._beat_s, round_.due_s or float("inf"))
        if self._wake.wait(max(0.0, until_s - now_s)):
            self._wake.clear()
        if time.monotonic() >= self._heard_s + self._beat_s:
            self._group.beat()
            self._heard_s = time.monotonic()

    def _is_due(self, round_: _Round) -> bool:
        """Whether the group must come together again because of this worker."""
        if round_.must_rejoin:
            return self._work.is_settled
        if round_.due_s is not None and time.monotonic() >= round_.due_s:
            return True
        return round_.covered is not None and round_.covered != self._work.configured

    # The leader --------------------------------------------------------------------------------

    def _lead(self, joined: JoinedGroup) -> tuple[Held, dict[str, GroupAssignment]]:
        """What was to be shared out, and what each member is told."""
        assert joined.members is not None
        states = {member: decode_state(told) for member, told in joined.members.items()}
        if self._led_generation != joined.generation_id - 1:
            self._memory = LeaderMemory()  # Another worker led in between, and knows better.
        self._work.catch_up()
        configured = self._work.configured
        workers = [
            GroupWorker(member=member, url=state.url, held=state.held)
            for member, state in sorted(states.items())
        ]
        here = {one.url for one in workers}
        gone = {url: given for url, given in self._memory.given.items() if url not in here}
        shares = share_out(
            configured,
            workers,
            self._memory,
            given_up=self._work.given_up(gone),
            now_ms=time.monotonic_ns() // 1_000_000,
            delay_ms_max=self._delay_ms_max,
        )
        self._memory, self._led_generation = shares.memory, joined.generation_id
        offset = max([self._work.config_offset, *(one.config_offset for one in states.values())])
        orders = {
            member: GroupAssignment(
                leader=joined.member_id,
                leader_url=self._url,
                config_offset=offset,
                assigned=share.assigned,
                revoked=share.revoked,
                delay_ms=shares.delay_ms,
            )
            for member, share in shares.by_member.items()
        }
        return configured, orders

    def _obey(
        self,
        joined: JoinedGroup,
        told: GroupAssignment,
        configured: Held | None,
        held: Held,
    ) -> _Round:
        """Take one's own share of a round."""
        self._owned = (self._owned - told.revoked) | told.assigned
        self._work.take(
            GroupPlace(
                owned=self._owned,
                is_leader=configured is not None,
                leader_url=told.leader_url,
                generation=joined.generation_id,
                owners={} if configured is None else self._owners(),
            )
        )
        self._is_member.set()
        if told.has_failed:
            self._stopping.wait(_PAUSE_S)
        due_s = time.monotonic() + told.delay_ms / 1000 if told.delay_ms else None
        # What still ends here after an earlier round was told as held: tell when it is over.
        must_rejoin = told.has_failed or bool(told.revoked or held - self._owned)
        return _Round(covered=configured, must_rejoin=must_rejoin, due_s=due_s)

    def _owners(self) -> dict[TaskId, str]:
        return {of: url for url, items in self._memory.given.items() for of in items}

    # The way out -------------------------------------------------------------------------------

    def _let_go_if_silent(self) -> None:
        if time.monotonic() - self._heard_s > self._session_s and self._owned:
            log.warning("The group was not reached for a session's time: all work is let go")
            self._owned = frozenset()
            self._work.take(OUTSIDE)

    def _fail(self, error: PenstockError) -> None:
        if isinstance(error, InconsistentGroupProtocol):
            error = GroupRefused(
                "The group has members that do not speak the protocol `sessioned`: workers of"
                " Apache's with another `connect.protocol`, or clients that are no workers."
            )
        log.error("%s", error)
        self._work.take(OUTSIDE)
        self.failure = error
