"""KafkaStreams: a topology that runs on Spark, stage by stage, for as long as it is wanted.

One thread owns the Spark session and looks after the queries (`penstock.queries`); the caller's
threads start, ask and close. The states are Kafka Streams'.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from penstock.errors import CommandError
from penstock.queries.engine import Engine
from penstock.queries.lag import LagReader
from penstock.queries.query import NewQuery
from penstock.queries.session import LOOK_S, QuerySession, SparkProcess
from penstock.queries.status import FAILED, RUNNING, QueryStatus
from penstock.streams.following.follower import StoreFollower
from penstock.streams.plan.nodes import StreamsTopology
from penstock.streams.running.folder import ApplicationFolder
from penstock.streams.running.preparing import prepare
from penstock.streams.running.settings import StreamsSettings, streams_settings
from penstock.streams.running.stage_queries import SHORT_TIMEOUTS, new_purge, new_query
from penstock.streams.running.unheard import refuse_unheard
from penstock.streams.words.kafka_words import KafkaWords

if TYPE_CHECKING:
    from penstock.streams.spark.stage_query import StageQuery

_STATUS_S = 1.0

StartEngine = Callable[[threading.Event], SparkProcess]


class StreamsState(Enum):
    """The states of Kafka Streams' client."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"  # Its stages are being started.
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"


Listener = Callable[[StreamsState, StreamsState], None]
_ENDED = (StreamsState.NOT_RUNNING, StreamsState.ERROR)


class KafkaStreams(KafkaWords):
    """An application: a topology and its settings."""

    def __init__(
        self,
        topology: StreamsTopology,
        config: Mapping[str, object],
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        modules: Iterable[ModuleType] = (),  # Of the user's: workers need not find their files.
        report: Callable[[str], None] | None = None,
        restarts_max: int | None = None,
        start_engine: StartEngine | None = None,
    ) -> None:
        if not isinstance(topology, StreamsTopology):
            raise TypeError(f"an application takes what build() returns, not {topology!r}")
        self.topology = topology
        refuse_unheard(config)
        self.settings: StreamsSettings = streams_settings(config)
        self.folder = ApplicationFolder(self.settings.folder)
        self.failure: str | None = None  # Why it is in ERROR.
        self._master, self._conf = master, dict(conf or {})
        self._modules = tuple(modules)
        self._report = report or (lambda sentence: None)
        self._restarts_max = restarts_max
        self._start_engine = start_engine or self._own_engine
        self._state = StreamsState.CREATED
        self._listeners: list[Listener] = []
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._session: QuerySession | None = None
        self._thread: threading.Thread | None = None
        self._written_s = 0.0
        self._purge = new_purge(self.settings, topology)
        self._followers: dict[str, StoreFollower] = {}

    @property
    def state(self) -> StreamsState:
        """How it is now."""
        return self._state

    @property
    def stages(self) -> list[QueryStatus]:
        """How each stage is doing."""
        return list(self._session.statuses.values()) if self._session else []

    def on_state_change(self, listener: Listener) -> None:
        """Have a function called with the new and the old state; before `start`."""
        if self._state is not StreamsState.CREATED:
            raise CommandError("Can only set StateListener before calling start().")
        self._listeners.append(listener)

    def start(self) -> None:
        """Check topics, plan and state, and start all stages; CommandError tells what is wrong."""
        queries = self._begin(once=False)
        self._session = self._new_session()
        for query in queries:
            self._session.add(self._new_query(query, ends=False))
        self._thread = threading.Thread(target=self._run, name="streams", daemon=True)
        self._thread.start()

    def run_once(self) -> None:
        """Work off what the inputs hold now, through all stages, and return."""
        queries = self._begin(once=True)
        self._session = session = self._new_session()
        with ExitStack() as stack:
            stack.callback(self._finish)
            stack.callback(session.end)
            session.start(self._stop)
            self._change(StreamsState.RUNNING)
            while not self._stop.is_set():
                worked = [self._work_off(session, query) for query in queries]
                if not any(worked) or self.failure or not _goes_round(queries):
                    break
            self._purge.look(time.monotonic())

    def close(self, timeout_s: float = 120.0) -> bool:
        """Stop all stages and wait; whether it ended in time."""
        self._stop.set()
        while self._followers:
            self._followers.popitem()[1].close()
        if self._thread is None:
            self._change(StreamsState.NOT_RUNNING)
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended, by `close` or by an error; whether it has."""
        return self._ended.wait(timeout_s)

    def clean_up(self) -> None:
        """Remove its state on this machine; not while it runs."""
        if self._state not in (StreamsState.CREATED, *_ENDED):
            raise CommandError("Cannot clean up while running.")
        self.folder.remove()

    def store(self, name: str) -> StoreFollower:
        """A store to ask by key, range and window; it answers until `close`."""
        if self._state is StreamsState.CREATED:
            raise CommandError("Start the application before its stores are asked.")
        if name not in self._followers:
            application_id, client = self.settings.application_id, self.settings.client
            self._followers[name] = StoreFollower(self.topology, application_id, name, client)
        return self._followers[name]

    def __enter__(self) -> "KafkaStreams":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, *, once: bool) -> "tuple[StageQuery, ...]":
        from penstock.client.wire.raw_cluster import cluster_for

        if self._state is not StreamsState.CREATED:
            raise CommandError("The client is either already started or already stopped.")
        self.folder.lock()
        try:
            with cluster_for(self.settings.client) as cluster:
                prepared = prepare(cluster, self.settings, self.topology, self.folder, once=once)
        except BaseException:
            self.folder.unlock()
            raise
        for name in prepared.created:
            self._report(f"Created the topic {name}.")
        if prepared.is_restored:
            application_id, path = self.settings.application_id, self.folder.path
            self._report(
                f"The state of {application_id} is not in {path}: it goes on where its topics "
                "tell, and is restored from its changelogs."
            )
        self._change(StreamsState.REBALANCING)
        return prepared.queries

    def _run(self) -> None:
        assert self._session is not None
        try:
            self._session.start(self._stop)
            while not self._stop.wait(LOOK_S):
                self._session.look(self._stop)
                if self._take_statuses():
                    break
                self._purge.look(time.monotonic())
        except Exception as error:  # noqa: BLE001  (the thread ends with it: the state tells)
            self.failure = str(error) or type(error).__name__
        finally:
            ending = StreamsState.PENDING_ERROR if self.failure else StreamsState.PENDING_SHUTDOWN
            self._change(ending)
            self._session.end()
            self._finish()

    def _finish(self) -> None:
        self._change(StreamsState.ERROR if self.failure else StreamsState.NOT_RUNNING)
        self._write_status()
        self.folder.unlock()
        self._ended.set()

    def _take_statuses(self) -> bool:
        """What the stages' statuses make of the state; True: a stage was given up."""
        statuses = self.stages
        failed = [one for one in statuses if one.state == FAILED]
        if failed:
            self.failure = f"{failed[0].name} was given up: {failed[0].failure}"
            return True
        runs = all(one.state == RUNNING for one in statuses)
        self._change(StreamsState.RUNNING if runs else StreamsState.REBALANCING)
        if time.monotonic() >= self._written_s + _STATUS_S:
            self._written_s = time.monotonic()
            self._write_status()
        return False

    def _work_off(self, session: QuerySession, query: "StageQuery") -> bool:
        """Run one stage to the end of what it reads; whether there was anything.

        The checkpoint is asked: what Spark reports of the last batch may come after its end.
        """
        before = _latest_batch(query.checkpoint)
        session.add(self._new_query(query, ends=True))
        while not self._stop.is_set() and not session.statuses[query.name].has_ended:
            session.look(self._stop)
            self._stop.wait(LOOK_S / 5)
        status = session.statuses[query.name]
        if status.state == FAILED:
            self.failure = f"{status.name} was given up: {status.failure}"
            self._stop.set()
        return _latest_batch(query.checkpoint) != before

    def _new_session(self) -> QuerySession:
        from penstock.client.wire.raw_cluster import cluster_for

        client = {**self.settings.client, **SHORT_TIMEOUTS}
        return QuerySession(
            self._start_engine,
            report=self._report,
            open_lags=lambda: LagReader(cluster_for(client)),
        )

    def _new_query(self, query: "StageQuery", *, ends: bool) -> NewQuery:
        return new_query(
            query, ends=ends, restarts_max=self._restarts_max, before=self._carry_by_value
        )

    def _carry_by_value(self) -> None:
        """What the user's modules define travels with the plan: no worker has their files."""
        from penstock.spark.start.by_value import carry_by_value

        carry_by_value(self._modules)

    def _own_engine(self, stop: threading.Event) -> SparkProcess:
        log = self.folder.spark_log
        self._report(f"Starting Spark for {self.settings.application_id} (its own log: {log}).")
        return Engine.start(
            f"penstock streams {self.settings.application_id}",
            master=self._master,
            conf=self._conf,
            log=log,
            stop=stop,
        )

    def _change(self, state: StreamsState) -> None:
        before, self._state = self._state, state
        if before is not state:
            for listener in self._listeners:
                listener(state, before)

    def _write_status(self) -> None:
        bootstrap = self.settings.client["bootstrap.servers"]
        self.folder.write_statuses(self._state.value, bootstrap, self.stages)


def _latest_batch(checkpoint: Path) -> int:
    """The number of the last batch that a stage planned; -1: none."""
    planned = checkpoint.glob("offsets/*")
    return max((int(file.name) for file in planned if file.name.isdigit()), default=-1)


def _goes_round(queries: "tuple[StageQuery, ...]") -> bool:
    """Whether a stage writes what an earlier one, or it itself, reads."""
    for place, query in enumerate(queries):
        sinks = [node for node in query.work.topology.nodes if node.kind == "sink"]
        written = {query.work.name(topic) for node in sinks for topic in node.topics}
        if any(written.intersection(earlier.topics) for earlier in queries[: place + 1]):
            return True
    return False
