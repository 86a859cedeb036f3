"""The supervisor: runs all pipelines of the given files in one session and keeps them running.

The session (`penstock.queries`) starts, watches and restarts their queries; here are the state
directory, the topics, and what other terminals ask. Each pipeline is locked in the state directory
while it is run, since two drivers on one checkpoint would spoil it.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.client.wire.secrets import without_written_secrets
from penstock.pipelines.declaration import ONCE, Pipeline
from penstock.pipelines.state import PipelineState, PipelineStatus, StateDir
from penstock.pipelines.topics import create_missing
from penstock.queries.engine import Engine
from penstock.queries.lag import LagReader
from penstock.queries.query import NewQuery
from penstock.queries.session import LOOK_S, QuerySession
from penstock.queries.status import FAILED, QueryStatus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.queries.query import Query

_STATUS_S = 1.0
_BOOTSTRAP = "bootstrap.servers"
# For the lag, which is only told: a cluster that is away must not hold up the watching.
_SHORT_TIMEOUTS = {"request.timeout.ms": "3000", "default.api.timeout.ms": "2000"}

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a supervisor is to run, and how."""

    pipelines: Sequence[Pipeline]
    files: Mapping[str, str]  # The file of each pipeline, by its name.
    state: StateDir
    settings: Mapping[str, str] = field(repr=False)  # Of the client: bootstrap.servers, security.
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    py_files: Sequence[str] = ()
    once: bool = False
    restarts_max: int | None = None  # In a row; None: no limit (with `once`: a few).


class Supervisor:
    """Runs an order until it is told to stop or everything has ended."""

    def __init__(self, order: Order, report: Report) -> None:
        self._order = order
        self._report = report
        self._states = {one.name: order.state.pipeline(one.name) for one in order.pipelines}
        self._session = QuerySession(
            self._start_engine, report=report, open_lags=partial(_open_lags, order.settings)
        )
        self._next_status_s = 0.0
        for one in order.pipelines:
            for query in one.queries:
                self._session.add(self._new_query(one, query))

    @property
    def statuses(self) -> list[PipelineStatus]:
        """How everything is now; for any thread."""
        order, queries = self._order, self._session.statuses
        # Whoever runs `reset` later says again what must not lie in a file of ours.
        settings = without_written_secrets(order.settings)
        del settings[_BOOTSTRAP]
        return [
            PipelineStatus(
                name=one.name,
                file=order.files.get(one.name, ""),
                bootstrap=order.settings[_BOOTSTRAP],
                settings=settings,
                pid=os.getpid(),
                master=order.master or "local[*]",
                updated_ms=_now_ms(),
                queries=[queries[query] for query in one.queries],
            )
            for one in order.pipelines
        ]

    @property
    def failed(self) -> list[QueryStatus]:
        """The queries that were given up."""
        return [one for one in self._session.statuses.values() if one.state == FAILED]

    def run(self, stop: threading.Event) -> None:
        """Everything from locks to the end of Spark's process."""
        from penstock.client.wire.raw_cluster import cluster_for

        with ExitStack() as stack:
            for state in self._states.values():
                state.lock()
                stack.callback(state.unlock)
            stack.callback(self._write_statuses)
            self._write_statuses()  # Others see it from here on: Spark takes a while.
            with cluster_for(self._order.settings) as cluster:
                for name in create_missing(cluster, self._order.pipelines):
                    self._report(f"Created the topic {name}.")
            stack.callback(self._session.end)
            self._session.start(stop)
            while not stop.is_set() and self._look(stop):
                stop.wait(LOOK_S)

    def _look(self, stop: threading.Event) -> bool:
        """One round; whether there is still something to do."""
        asked = [state for state in self._states.values() if state.is_asked_to_stop()]
        stopped = {state.name: self._stop_queries(state) for state in asked}
        self._session.look(stop)
        for state in asked:
            for query in stopped[state.name]:
                self._report(f"{query} was stopped from another terminal.")
            self._write_statuses()
            state.unlock()
        if time.monotonic() >= self._next_status_s:
            self._next_status_s = time.monotonic() + _STATUS_S
            self._write_statuses()
        return not self._session.have_all_ended

    def _stop_queries(self, state: PipelineState) -> list[str]:
        """Stop what still runs of a pipeline with the session's next look; its names."""
        state.clear_stop()
        (declared,) = [one for one in self._order.pipelines if one.name == state.name]
        statuses = self._session.statuses
        running = [query for query in declared.queries if not statuses[query].has_ended]
        for query in running:
            self._session.stop(query)
        return running

    def _start_engine(self, stop: threading.Event) -> Engine:
        order = self._order
        names = ", ".join(one.name for one in order.pipelines)
        self._report(f"Starting Spark for {names} (its own log: {order.state.spark_log}).")
        began = time.monotonic()
        engine = Engine.start(
            "penstock pipelines",
            master=order.master,
            conf=order.conf,
            log=order.state.spark_log,
            py_files=order.py_files,
            stop=stop,
        )
        self._report(f"Spark is ready after {time.monotonic() - began:.0f} s.")
        return engine

    def _write_statuses(self) -> None:
        for status in self.statuses:
            state = self._states[status.name]
            if state.is_running():
                state.write_status(status)

    def _new_query(self, declared: Pipeline, query: str) -> NewQuery:
        root = self._states[declared.name].checkpoints
        if declared.checkpoint is not None:
            root = Path(declared.checkpoint).expanduser()
        order, checkpoint = self._order, (root / query).resolve()

        def start(spark: "SparkSession") -> "Query":
            from penstock.pipelines.queries import start_query

            return start_query(
                spark,
                declared,
                query,
                settings=order.settings,
                checkpoint=checkpoint,
                once=order.once,
            )

        return NewQuery(
            name=query,
            topics=[topic.name for topic in declared.streams.values()],
            output=declared.queries[query].label,
            group=declared.group_of(query),
            checkpoint=checkpoint,
            start=start,
            ends=order.once or declared.trigger == ONCE,
            restarts_max=order.restarts_max,
        )


def _open_lags(settings: Mapping[str, str]) -> LagReader:
    from penstock.client.wire.raw_cluster import cluster_for

    return LagReader(cluster_for({**settings, **_SHORT_TIMEOUTS}))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
