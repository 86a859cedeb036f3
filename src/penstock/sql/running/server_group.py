"""This server's part in the group of its service's servers: one of them runs the queries.

The group protocol waits on the caller's thread (`client/operations/membership.py`), so it has one
of its own. A server that the group has given up goes on until it knows better: brokers fence it
where another one runs the queries by then. All servers read the log of commands between two beats,
so that each can answer.
"""

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from penstock.client.operations.membership import GroupMembership, GroupProtocol
from penstock.client.wire.raw_cluster import cluster_for
from penstock.errors import IllegalGeneration, PenstockError, RebalanceInProgress, UnknownMemberId
from penstock.sql.running.electing import ElectedRunner, ServerIdentity, elect_runner
from penstock.sql.running.engine import SqlEngine

log = logging.getLogger("penstock.sql")

_TYPE: Final = "penstock-sql"
_PROTOCOL: Final = "v1"
_SESSION_MS: Final = 10_000
_REBALANCE_MS: Final = 30_000
_BEAT_S: Final = 3.0
_LOOK_S: Final = 0.5
_STOP_S: Final = 10.0


class ServerGroup:
    """A thread that joins, beats, reads the log and obeys the verdict."""

    def __init__(
        self, engine: SqlEngine, client: Mapping[str, str], service_id: str, url: str
    ) -> None:
        self.url = url
        self.verdict: ElectedRunner | None = None  # None: not in the group now.
        self.seen_ms = 0  # When the group last knew us.
        self._engine = engine
        self._is_given_up = False  # Whether somebody may have taken our place since.
        self._stopping = threading.Event()
        self._cluster = cluster_for(client)
        self._group = GroupMembership(
            self._cluster,
            GroupProtocol(
                group_id=f"_confluent-ksql-{service_id}servers",
                protocol_type=_TYPE,
                protocol=_PROTOCOL,
                session_timeout_ms=_SESSION_MS,
                rebalance_timeout_ms=_REBALANCE_MS,
            ),
        )
        self._thread = threading.Thread(target=self._run, name="sql servers", daemon=True)

    @property
    def runner_url(self) -> str | None:
        """Of the server that runs the queries; None: it is not known, or it is this one."""
        verdict = self.verdict
        return None if verdict is None or verdict.url == self.url else verdict.url

    def start(self) -> None:
        """Take part from now on."""
        self._thread.start()

    def close(self) -> None:
        """Leave, so that another server takes over at once."""
        self._stopping.set()
        self._thread.join(_STOP_S)
        with suppress(PenstockError):
            self._group.leave()
        self._cluster.close()

    def _run(self) -> None:
        with suppress(PenstockError, ValueError):
            # Whoever was at our address before us is dead: the address is ours now.
            self._group.evict(lambda told: ServerIdentity.decode(told).url == self.url)
        while not self._stopping.is_set():
            try:
                self._take_part()
            except RebalanceInProgress:
                continue
            except (UnknownMemberId, IllegalGeneration) as error:
                log.warning("The group of servers gave this one up: %s", error)
                self._group.forget()
                self._is_given_up, self.verdict = True, None
            except (PenstockError, ValueError) as error:
                log.warning("No part in the group of servers for now: %s", error)
                self._stopping.wait(_LOOK_S)
            except Exception:
                log.exception("The group of servers cannot be taken part in")
                self._stopping.wait(_BEAT_S)

    def _take_part(self) -> None:
        """One generation of the group, until its next rebalance."""
        runs = self._engine.runs_queries and not self._is_given_up
        mine = ServerIdentity(url=self.url, runs_queries=runs)
        joined = self._group.join(mine.encode())
        given = b"" if joined.members is None else elect_runner(joined.members).encode()
        verdict = ElectedRunner.decode(self._group.sync(dict.fromkeys(joined.members or (), given)))
        self._note()
        self._obey(verdict, is_us=verdict.member_id == joined.member_id)
        beat_s = time.monotonic() + _BEAT_S
        while not self._stopping.wait(_LOOK_S):
            if time.monotonic() >= beat_s:
                self._group.beat()
                self._note()
                beat_s = time.monotonic() + _BEAT_S
            self._engine.follow()

    def _note(self) -> None:
        self.seen_ms = time.time_ns() // 1_000_000

    def _obey(self, verdict: ElectedRunner, *, is_us: bool) -> None:
        self.verdict = verdict
        if is_us and (self._is_given_up or not self._engine.runs_queries):
            log.info("This server runs the queries of its service")
            self._engine.run_queries()
        elif not is_us and self._engine.runs_queries:
            log.info("The server at %s runs the queries of this service", verdict.url)
            self._engine.leave_queries()
        self._is_given_up = False
