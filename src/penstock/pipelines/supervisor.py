"""The supervisor: runs all pipelines of the given files in one session and keeps them running.

One thread (`run`) starts, watches and restarts; anyone may read `statuses`, a picture that is
replaced as a whole. Each pipeline is locked in the state directory while it is run, since two
drivers on one checkpoint would spoil it.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from penstock.errors import PenstockError
from penstock.pipelines.declaration import ONCE, Pipeline
from penstock.pipelines.engine import Engine, EngineFailed
from penstock.pipelines.failure import Failure, failure_of
from penstock.pipelines.lag import LagReader
from penstock.pipelines.progress import progress_of
from penstock.pipelines.restart import Attempts, pause_s
from penstock.pipelines.state import PipelineState, PipelineStatus, QueryStatus, StateDir
from penstock.pipelines.topics import create_missing

if TYPE_CHECKING:
    from penstock.pipelines.queries import Query

_LOOK_S = 0.25
_LAG_S = 1.0
_STATUS_S = 1.0
_SETTLE_S = 20.0
_RESTARTS_ONCE = 3  # A run that is to end must not try for ever.
_BOOTSTRAP = "bootstrap.servers"
# For the lag, which is only told: a cluster that is away must not hold up the watching.
_IMPATIENT = {"request.timeout.ms": "3000", "default.api.timeout.ms": "2000"}

STARTING, RUNNING, WAITING = "starting", "running", "waiting"
FAILED, STOPPED, FINISHED = "failed", "stopped", "finished"
_ENDED = (FAILED, STOPPED, FINISHED)

_SPARK_ENDED = Failure("Spark's process ended unexpectedly; it is started again", False)

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a supervisor is to run, and how."""

    pipelines: Sequence[Pipeline]
    files: Mapping[str, str]  # The file of each pipeline, by its name.
    state: StateDir
    settings: Mapping[str, str]  # Of the client: bootstrap.servers, security.
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    py_files: Sequence[str] = ()
    once: bool = False
    restarts_max: int | None = None  # In a row; None: no limit (with `once`: a few).


@dataclass(slots=True)
class _Run:
    """One query: what it is, and how it is doing."""

    pipeline: Pipeline
    name: str
    status: QueryStatus
    checkpoint: Path
    ends: bool  # It is to end by itself when it has read everything.
    handle: "Query | None" = None
    attempts: Attempts = field(default_factory=Attempts)
    progressed: bool = False  # A batch was committed since its last start.
    seen: set[tuple[int, str]] = field(default_factory=set)
    settles_until_s: float = 0.0  # Until then others wait for it, if it is not ready before.


class Supervisor:
    """Runs an order until it is told to stop or everything has ended."""

    def __init__(self, order: Order, report: Report) -> None:
        self._order = order
        self._report = report
        self._states = {one.name: order.state.pipeline(one.name) for one in order.pipelines}
        self._runs = [self._run_of(one, query) for one in order.pipelines for query in one.queries]
        self._engine: Engine | None = None
        self._engine_failures = 0
        self._lags: LagReader | None = None
        self._next_lag_s = self._next_status_s = 0.0
        self.statuses: list[PipelineStatus] = self._picture()

    @property
    def failed(self) -> list[QueryStatus]:
        """The queries that were given up."""
        return [run.status for run in self._runs if run.status.state == FAILED]

    def run(self, stop: threading.Event) -> None:
        """Everything from locks to the end of Spark's process."""
        from penstock.client.raw_cluster import cluster_for

        with ExitStack() as stack:
            for state in self._states.values():
                state.lock()
                stack.callback(state.unlock)
            stack.callback(self._write_statuses)
            with cluster_for(self._order.settings) as cluster:
                for name in create_missing(cluster, self._order.pipelines):
                    self._report(f"Created the topic {name}.")
            self._lags = LagReader(cluster_for({**self._order.settings, **_IMPATIENT}))
            stack.callback(self._lags.close)
            stack.callback(self._end)
            self._start_engine()
            while not stop.is_set() and self._look(stop):
                stop.wait(_LOOK_S)

    def _look(self, stop: threading.Event) -> bool:
        """One round; whether there is still something to do."""
        if self._engine is None or not self._engine.is_alive:
            self._revive(stop)
        for state in self._states.values():
            if state.is_asked_to_stop():
                self._stop_pipeline(state)
        for run in self._runs:
            if run.handle is not None:
                self._watch(run)
            elif (run.status.state == STARTING or self._is_due(run)) and not self._is_settling():
                self._start(run)
        self._refresh()
        return any(run.status.state not in _ENDED for run in self._runs)

    def _start_engine(self) -> None:
        order = self._order
        names = ", ".join(one.name for one in order.pipelines)
        self._report(f"Starting Spark for {names} (its own log: {order.state.spark_log}).")
        began = time.monotonic()
        self._engine = Engine.start(
            "penstock pipelines",
            master=order.master,
            conf=order.conf,
            log=order.state.spark_log,
            py_files=order.py_files,
        )
        self._report(f"Spark is ready after {time.monotonic() - began:.0f} s.")

    def _revive(self, stop: threading.Event) -> None:
        """Spark's process has died: what ran in it failed, and it is started again."""
        if self._engine is not None:
            self._engine.stop()
            self._engine = None
            for run in self._runs:
                if run.handle is not None:
                    self._fail(run, _SPARK_ENDED)
        if self._engine_failures and stop.wait(pause_s(self._engine_failures)):
            return
        try:
            self._start_engine()
            self._engine_failures = 0
        except EngineFailed as error:
            self._engine_failures += 1
            self._report(str(error))

    def _start(self, run: _Run) -> None:
        from penstock.pipelines.queries import start_query

        if self._engine is None:
            return
        run.progressed = False
        self._set(run, state=STARTING)
        self._publish()
        try:
            run.handle = start_query(
                self._engine.spark,
                run.pipeline,
                run.name,
                settings=self._order.settings,
                checkpoint=run.checkpoint,
                once=self._order.once,
            )
        except Exception as error:  # noqa: BLE001  (whatever the user's function raises is told)
            alive = self._engine.is_alive
            self._fail(run, _failure_at_start(error, run) if alive else _SPARK_ENDED)
            return
        run.settles_until_s = time.monotonic() + _SETTLE_S
        self._set(run, state=RUNNING, query_id=str(run.handle.id))
        self._report(f"{run.name} runs: {_route(run)}.")

    def _watch(self, run: _Run) -> None:
        assert run.handle is not None
        try:
            self._take_progress(run)
            if run.handle.isActive:
                return
            error = run.handle.exception()
        except _spark_is_gone():
            return  # Spark's process is going away; the next round sees it.
        if error is not None:
            self._fail(run, failure_of(str(error), run.checkpoint))
            return
        run.handle = None
        self._set(run, state=FINISHED if run.ends else STOPPED)
        self._next_lag_s = 0.0  # What it leaves is asked for at once: there may be no later.
        self._report(f"{run.name} has {run.status.state}: {run.status.rows:,} records read.")

    def _take_progress(self, run: _Run) -> None:
        assert run.handle is not None
        for document in run.handle.recentProgress:
            key = (int(document["batchId"]), str(document["timestamp"]))
            if key in run.seen:
                continue
            run.seen.add(key)
            if "addBatch" not in (document.get("durationMs") or {}):
                self._set(run, input_rows_per_s=0.0, processed_rows_per_s=0.0)
                continue  # Nothing was there to do.
            run.progressed = True
            progress = progress_of(document)
            self._set(
                run,
                batch=progress.batch,
                rows=run.status.rows + progress.rows,
                input_rows_per_s=progress.input_rows_per_s,
                processed_rows_per_s=progress.processed_rows_per_s,
                batch_ms=progress.batch_ms,
                late_rows=run.status.late_rows + progress.late_rows,
            )

    def _fail(self, run: _Run, failure: Failure) -> None:
        run.handle = None
        now_ms = _now_ms()
        limit = self._order.restarts_max
        if limit is None and run.ends:
            limit = _RESTARTS_ONCE
        if failure.is_permanent:
            run.attempts = run.attempts.given_up()
        else:
            run.attempts = run.attempts.failed(
                now_ms=now_ms, progressed=run.progressed, in_a_row_max=limit
            )
        resume_ms = run.attempts.resume_ms
        self._set(
            run,
            state=FAILED if resume_ms is None else WAITING,
            failure=failure.sentence,
            failed_ms=now_ms,
            restarts=run.attempts.total - (resume_ms is None),
            input_rows_per_s=None,
            processed_rows_per_s=None,
        )
        then = (
            "It is given up."
            if resume_ms is None
            else (f"It starts again in {(resume_ms - now_ms) / 1000:.0f} s.")
        )
        self._report(f"{run.name} failed: {failure.sentence.rstrip('.')}. {then}")

    def _is_settling(self) -> bool:
        """Whether a query still starts its own Python process.

        Spark gives such a process ten seconds; many at once on few cores would all miss them.
        """
        return any(run.settles_until_s > time.monotonic() and _settles(run) for run in self._runs)

    def _is_due(self, run: _Run) -> bool:
        resume_ms = run.attempts.resume_ms
        return run.status.state == WAITING and resume_ms is not None and _now_ms() >= resume_ms

    def _stop_pipeline(self, state: PipelineState) -> None:
        state.clear_stop()
        for run in self._runs:
            if run.pipeline.name == state.name and run.status.state not in _ENDED:
                self._stop_run(run)
                self._report(f"{run.name} was stopped from another terminal.")
        self._write_statuses()
        state.unlock()

    def _stop_run(self, run: _Run) -> None:
        handle, run.handle = run.handle, None
        if handle is not None and self._engine is not None and self._engine.is_alive:
            try:
                handle.stop()
            except Exception as error:  # noqa: BLE001  (it is stopped either way; say why it was rough)
                self._report(f"{run.name} did not stop in good order: {error}")
        self._set(run, state=STOPPED, input_rows_per_s=None, processed_rows_per_s=None)

    def _end(self) -> None:
        left = [run for run in self._runs if run.status.state not in _ENDED]
        if left:
            self._report("Stopping; a batch that is cut off is taken again by the next run.")
        for run in left:
            self._stop_run(run)
        self._publish()
        if self._engine is not None:
            self._engine.stop()
            self._engine = None

    def _refresh(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_lag_s and self._lags is not None:
            self._next_lag_s = now_s + _LAG_S
            for run in self._runs:
                topics = [topic.name for topic in run.pipeline.streams.values()]
                lag = self._lags.lag(run.status.group, topics)
                self._set(run, lag=lag)
                if lag is None:
                    break  # The cluster is away; asking for the others would only take time.
        self._publish()
        if now_s >= self._next_status_s:
            self._next_status_s = now_s + _STATUS_S
            self._write_statuses()

    def _write_statuses(self) -> None:
        self._publish()
        for status in self.statuses:
            state = self._states[status.name]
            if state.is_running():
                state.write_status(status)

    def _publish(self) -> None:
        self.statuses = self._picture()

    def _picture(self) -> list[PipelineStatus]:
        order = self._order
        settings = {key: value for key, value in order.settings.items() if key != _BOOTSTRAP}
        return [
            PipelineStatus(
                name=one.name,
                file=order.files.get(one.name, ""),
                bootstrap=order.settings[_BOOTSTRAP],
                settings=settings,
                pid=os.getpid(),
                master=order.master or "local[*]",
                updated_ms=_now_ms(),
                queries=[run.status for run in self._runs if run.pipeline is one],
            )
            for one in order.pipelines
        ]

    def _run_of(self, declared: Pipeline, query: str) -> _Run:
        root = self._states[declared.name].checkpoints
        if declared.checkpoint is not None:
            root = Path(declared.checkpoint).expanduser()
        checkpoint = (root / query).resolve()
        status = QueryStatus(
            name=query,
            output=declared.queries[query].label,
            group=declared.group_of(query),
            checkpoint=str(checkpoint),
            state=STARTING,
        )
        ends = self._order.once or declared.trigger == ONCE
        return _Run(pipeline=declared, name=query, status=status, checkpoint=checkpoint, ends=ends)

    def _set(self, run: _Run, **changes: object) -> None:
        run.status = replace(run.status, **changes)  # type: ignore[arg-type]


def _failure_at_start(error: Exception, run: _Run) -> Failure:
    """A function or an option that is wrong stays wrong; a broker may come back."""
    found = failure_of(f"{type(error).__name__}: {error}", run.checkpoint)
    ours = isinstance(error, PenstockError)
    text = str(error) if ours else found.sentence
    return Failure(text, found.is_permanent or not (ours or "Exception" in type(error).__name__))


def _settles(run: _Run) -> bool:
    if run.handle is None or run.progressed:
        return False
    try:
        message = str(run.handle.status["message"])
    except _spark_is_gone():
        return False  # Spark's process is going away; the next round sees it.
    return message.startswith(("Initializing", "Getting offsets"))


def _spark_is_gone() -> tuple[type[Exception], ...]:
    """What a call into Spark raises while its process dies, and when it is dead."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    return cast(type[Exception], Py4JError), ConnectionError


def _route(run: _Run) -> str:
    inputs = ", ".join(topic.name for topic in run.pipeline.streams.values())
    return f"{inputs} → {run.status.output}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
