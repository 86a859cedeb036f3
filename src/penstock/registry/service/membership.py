"""This instance's part in the group that elects the leader: a thread that joins and beats.

The group protocol waits on the caller's thread (`client/operations/membership.py`), so it has one
of its own; what it learns it tells the event loop. The decision is `registry/election.py`.
"""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from penstock.client.errors import ClientError
from penstock.client.operations.membership import GroupMembership, GroupProtocol
from penstock.client.wire.raw_cluster import cluster_for
from penstock.errors import (
    ConfigError,
    IllegalGeneration,
    PenstockError,
    ProtocolError,
    RebalanceInProgress,
    UnknownMemberId,
)
from penstock.registry.election import (
    DUPLICATE_URLS,
    PROTOCOL,
    PROTOCOL_TYPE,
    ForeignMember,
    InstanceIdentity,
    LeaderAssignment,
    decode_identity,
    elect,
)
from penstock.registry.service.config import RegistryConfig
from penstock.registry.service.leadership import Leadership

log = logging.getLogger("penstock.registry")

_PAUSE_S = 0.5
_BACK_S = 60.0  # Within which a predecessor shows that it lives.
_STOP_S = 5.0  # For the thread to leave the group.


@asynccontextmanager
async def taking_part(
    config: RegistryConfig, identity: InstanceIdentity, leadership: Leadership
) -> AsyncIterator["asyncio.Future[None]"]:
    """A member for as long as it is entered; the future fails with what makes that impossible."""
    loop = asyncio.get_running_loop()
    failure: asyncio.Future[None] = loop.create_future()
    member = _Member(config, identity, leadership, loop, failure)
    thread = threading.Thread(target=member.run, name="registry-member", daemon=True)
    thread.start()
    try:
        yield failure
    finally:
        member.stopping.set()
        await asyncio.to_thread(thread.join, _STOP_S)
        failure.cancel()


class _Member:
    """The thread's work."""

    def __init__(
        self,
        config: RegistryConfig,
        identity: InstanceIdentity,
        leadership: Leadership,
        loop: asyncio.AbstractEventLoop,
        failure: "asyncio.Future[None]",
    ) -> None:
        self.stopping = threading.Event()
        self._cluster = cluster_for(config.client)
        self._session_s = config.session_timeout_s
        self._beat_s = config.heartbeat_s
        self._identity = identity
        self._leadership = leadership
        self._loop = loop
        self._failure = failure
        self._has_looked = False
        self._evicted_s = float("-inf")
        self._has_joined = False
        self._group = GroupMembership(
            self._cluster,
            GroupProtocol(
                group_id=config.group_id,
                protocol_type=PROTOCOL_TYPE,
                protocol=PROTOCOL,
                session_timeout_ms=int(config.session_timeout_s * 1000),
                rebalance_timeout_ms=int(config.rebalance_timeout_s * 1000),
            ),
        )

    def run(self) -> None:
        """Until it is told to stop."""
        while not self.stopping.is_set():
            try:
                self._take_part()
            except RebalanceInProgress:
                continue
            except (UnknownMemberId, IllegalGeneration) as error:
                log.warning("The group does not know this instance any more: %s", error)
                self._group.forget()
                self._tell(self._leadership.forget)
            except ConfigError as error:
                self._fail(error)
                break
            except (ProtocolError, ClientError, ForeignMember) as error:
                log.warning("No part in the election of a leader for now: %s", error)
                self.stopping.wait(_PAUSE_S)
            except PenstockError as error:
                self._fail(error)
                break
        with suppress(PenstockError):
            self._group.leave()
        self._cluster.close()

    def _take_part(self) -> None:
        """One generation of the group, until its next rebalance."""
        if not self._has_looked:
            self._evict_predecessor()
        mine = replace(self._identity, is_leading=self._leadership.is_chosen)
        joined = self._group.join(mine.encode())
        since_s = time.monotonic()
        assigned: dict[str, bytes] = {}
        if joined.members is not None:
            verdict = elect(joined.members).encode()
            assigned = dict.fromkeys(joined.members, verdict)
        verdict = self._group.sync(assigned)
        self._obey(LeaderAssignment.decode(verdict), joined.member_id, since_s)
        while not self.stopping.wait(self._beat_s):
            since_s = time.monotonic()
            self._group.beat()
            until_s = since_s + self._session_s
            self._tell(lambda until_s=until_s: self._leadership.extend(until_s))  # type: ignore[misc]

    def _evict_predecessor(self) -> None:
        """Whoever was at our address before us is dead: the address is ours now."""
        self._has_looked = True

        def is_at_our_address(metadata: bytes) -> bool:
            with suppress(ForeignMember):
                return decode_identity(metadata).url == self._identity.url
            return False

        if self._group.evict(is_at_our_address):
            self._evicted_s = time.monotonic()
            log.info("A predecessor at this address was taken out of the group")

    def _obey(self, assignment: LeaderAssignment, member_id: str, since_s: float) -> None:
        if assignment.error == DUPLICATE_URLS:
            self._report_duplicate()
            return
        if assignment.error:
            raise ForeignMember(
                f"the group was told an error that is not known: {assignment.error}"
            )
        self._has_joined = True
        leader, is_us = assignment.identity, assignment.leader == member_id
        if leader is None:
            log.error("No instance of the group may lead: schemas can be read, not written")
        else:
            log.info("The leader is %s%s", leader.url, " (this instance)" if is_us else "")
        until_s = since_s + self._session_s
        self._tell(lambda: self._leadership.assign(leader, is_us=is_us, until_s=until_s))

    def _report_duplicate(self) -> None:
        """Whoever comes new with an address that is taken goes; those who were there wait.

        One that is back although we took it for dead was there before us.
        """
        if not self._has_joined or time.monotonic() < self._evicted_s + _BACK_S:
            raise ConfigError(
                f"another instance of the group is at {self._identity.url} too: give each one a "
                "listener of its own, and set host.name to a name by which the others reach it"
            )
        log.error("Two instances of the group have one address: nobody leads until one goes")
        self._tell(self._leadership.forget)

    def _tell(self, work: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # The loop has ended; nobody wants to know.
            self._loop.call_soon_threadsafe(work)

    def _fail(self, error: PenstockError) -> None:
        def fail() -> None:
            if not self._failure.done():
                self._failure.set_exception(error)

        self._tell(fail)
