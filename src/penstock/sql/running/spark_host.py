"""Persistent queries on Spark: each an application of Streams, all on one supervised session.

Spark starts with the first query. A query's state lies in `<state>/<application id>`; its internal
topics, its group and its folder carry ksqlDB's name for it, `_confluent-ksql-<service>query_<id>`.
"""

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from penstock.client.operations.group_offsets import alter_group_offsets, group_offsets
from penstock.client.operations.offsets import OffsetSpec
from penstock.client.values import OffsetAndMetadata, TopicPartition
from penstock.client.wire.raw_cluster import cluster_for
from penstock.errors import PenstockError
from penstock.queries.engine import Engine, EngineFailed
from penstock.queries.lag import LagReader
from penstock.queries.session import LOOK_S, QuerySession, SparkProcess
from penstock.queries.status import FAILED, RUNNING, QueryStatus
from penstock.sql.asking.records import edges
from penstock.sql.running.cluster_topics import ClusterTopics
from penstock.sql.running.ports import HostedQuery, QueryHealth, QueryState
from penstock.sql.running.processing_log import RETENTION_BYTES, query_log
from penstock.sql.service.settings import DEAD_LETTERS, SqlConfig, query_settings
from penstock.streams import TopologyError
from penstock.streams.running.folder import ApplicationFolder
from penstock.streams.running.preparing import prepare
from penstock.streams.running.purging import RepartitionPurge
from penstock.streams.running.reset import carry_out_reset, plan_application_reset
from penstock.streams.running.settings import StreamsSettings, streams_settings
from penstock.streams.running.stage_queries import SHORT_TIMEOUTS, new_purge, new_query
from penstock.streams.tasks.failures import FailureLog

log = logging.getLogger("penstock.sql")

StartSpark = Callable[[threading.Event], SparkProcess]

_GONE_S: Final = 120.0
_LOOK_GONE_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    names: tuple[str, ...]  # Of its stages in the session.
    folder: ApplicationFolder
    purge: RepartitionPurge


class SparkHost:
    """Runs queries on one Spark session; any thread may ask."""

    def __init__(self, config: SqlConfig, *, start_engine: StartSpark | None = None) -> None:
        self._config = config
        self._session = QuerySession(
            start_engine or self._own_engine,
            report=log.info,
            open_lags=lambda: LagReader(cluster_for({**config.client, **SHORT_TIMEOUTS})),
        )
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()
        self._running: dict[str, _Running] = {}
        self._failed: dict[str, str] = {}  # Queries that could not be prepared.

    def application_id(self, query_id: str) -> str:
        """What a query is called on the brokers."""
        return f"_confluent-ksql-{self._config.service_id}query_{query_id}"

    def start(self, hosted: HostedQuery) -> None:
        """Prepare topics and state, and hand the stages to the session."""
        with self._lock:
            self._failed.pop(hosted.id, None)
            if self._folder(hosted.id).is_running():
                return  # Another server of this machine stops it just now; it is tried again.
            try:
                self._running[hosted.id] = self._prepared(hosted)
            except (PenstockError, TopologyError) as error:
                log.error("The query %s cannot run: %s", hosted.id, error)
                self._failed[hosted.id] = str(error)
                return
            self._keep_looking()

    def settle(self, hosted: HostedQuery) -> None:
        """Fix where it begins, for another server to start it."""
        settings = self._settings(hosted)
        self._settle_start(hosted, settings, ApplicationFolder(settings.folder))

    def drop_state(self, query_ids: Iterable[str]) -> None:
        """Remove the folders: another server has gone on since, and topics tell how far."""
        for query_id in query_ids:
            folder = self._folder(query_id)
            if not folder.is_running():
                shutil.rmtree(folder.path, ignore_errors=True)

    def _folder(self, query_id: str) -> ApplicationFolder:
        return ApplicationFolder(self._config.state_dir / self.application_id(query_id))

    def pause(self, query_id: str) -> None:
        """Stop its stages; checkpoints, topics and offsets stay."""
        with self._lock:
            running = self._running.pop(query_id, None)
            self._failed.pop(query_id, None)
            if running is not None:
                self._remove(running)

    def end(self, query_ids: Iterable[str], *, forget: bool) -> None:
        """Stop its stages; `forget` removes state, internal topics and group."""
        for query_id in query_ids:
            self.pause(query_id)
            if forget:
                self._forget(query_id)

    def health(self, query_id: str) -> QueryHealth | None:
        """How its stages are."""
        if query_id in self._failed:
            return QueryHealth(state="ERROR", failures=(self._failed[query_id],))
        running = self._running.get(query_id)
        if running is None:
            return None
        statuses = self._session.statuses
        return health_of([statuses[name] for name in running.names if name in statuses])

    def close(self) -> None:
        """Stop all stages and Spark; queries go on with the next start."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_GONE_S)
        for running in self._running.values():
            running.folder.unlock()

    def _prepared(self, hosted: HostedQuery) -> _Running:
        settings = self._settings(hosted)
        if self._ensure_topics():
            settings = replace(settings, failures=self._failures(hosted))
        folder = ApplicationFolder(settings.folder)
        folder.lock()
        try:
            with cluster_for(settings.client) as cluster:
                self._settle_start(hosted, settings, folder)
                if not hosted.topology.stores:
                    # Offsets alone are no state that a new plan could spoil.
                    (folder.path / "topology.json").unlink(missing_ok=True)
                prepared = prepare(cluster, settings, hosted.topology, folder, once=False)
            for query in prepared.queries:
                self._session.add(new_query(query))
        except BaseException:
            folder.unlock()
            raise
        return _Running(
            names=tuple(query.name for query in prepared.queries),
            folder=folder,
            purge=new_purge(settings, hosted.topology),
        )

    def _failures(self, hosted: HostedQuery) -> FailureLog | None:
        told = self._config.processing_log
        sources = hosted.query.logical.sources
        if told.topic in (source.relation.topic for source in sources):
            return None  # It would read what it writes, and fail again.
        return query_log(told.topic, hosted.id, shows_rows=told.shows_rows)

    def _ensure_topics(self) -> bool:
        """Dead letters, and the processing log; whether that one is there."""
        if self._config.dead_letters is not None:
            topics = ClusterTopics(self._config.client)
            if topics.find(self._config.dead_letters) is None:
                replicas = self._config.internal_replicas
                name = self._config.dead_letters
                topics.create(name, partitions=1, replicas=replicas, configs={})
        return self.ensure_processing_log()

    def ensure_processing_log(self) -> bool:
        """Make its topic, if that is ours to do; whether it is there."""
        topics, told = ClusterTopics(self._config.client), self._config.processing_log
        if topics.find(told.topic) is not None:
            return True
        if not told.creates_topic:
            log.warning("The topic %s is not there: no processing log is written", told.topic)
            return False
        configs = {"retention.bytes": str(RETENTION_BYTES)}
        topics.create(
            told.topic, partitions=told.partitions, replicas=told.replicas, configs=configs
        )
        return True

    def _settings(self, hosted: HostedQuery) -> StreamsSettings:
        config = self._config
        return streams_settings(
            {
                **config.client,
                "replication.factor": config.internal_replicas,
                **config.streams,
                DEAD_LETTERS: config.dead_letters,
                **query_settings(config.properties),
                **query_settings(hosted.properties),
                # The start is settled when the statement comes, and not when Spark does.
                "auto.offset.reset": "earliest",
                "application.id": self.application_id(hosted.id),
                "state.dir": str(config.state_dir),
            }
        )

    def _settle_start(
        self, hosted: HostedQuery, settings: StreamsSettings, folder: ApplicationFolder
    ) -> None:
        """A query that begins at the end of its streams begins at the end that is now."""
        if folder.has_state() or self._reset(hosted.properties) == "earliest":
            return
        with cluster_for(settings.client) as cluster:
            if group_offsets(cluster, settings.application_id):
                return
            begins: dict[TopicPartition, OffsetAndMetadata] = {}
            for source in hosted.query.logical.sources:
                relation = source.relation
                edge = OffsetSpec.LATEST if relation.kind == "STREAM" else OffsetSpec.EARLIEST
                for partition, offset in edges(settings.client, relation.topic, edge).items():
                    at = TopicPartition(relation.topic, partition)
                    begins[at] = OffsetAndMetadata(offset)
            alter_group_offsets(cluster, settings.application_id, begins)

    def _reset(self, properties: Mapping[str, str]) -> str:
        said = {**query_settings(self._config.streams), **query_settings(properties)}
        return said.get("auto.offset.reset", "latest")

    def _forget(self, query_id: str) -> None:
        folder = self._folder(query_id)
        try:
            with cluster_for(self._config.client) as cluster:
                plan = plan_application_reset(cluster, self.application_id(query_id), folder)
                carry_out_reset(plan, cluster)
        except PenstockError as error:
            log.error("What %s leaves could not be removed: %s", query_id, error)

    def _remove(self, running: _Running) -> None:
        """Have the stages stopped, and wait until they are."""
        for name in running.names:
            self._session.remove(name)
        deadline_s = time.monotonic() + _GONE_S
        while any(name in self._session.statuses for name in running.names):
            if time.monotonic() > deadline_s:
                raise PenstockError("Spark did not stop a query in time.")
            time.sleep(_LOOK_GONE_S)
        running.folder.unlock()

    def _keep_looking(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sql queries", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            try:
                self._session.start(self._stop)
            except EngineFailed as error:
                log.error("%s It is tried again.", error)
            while not self._stop.wait(LOOK_S):
                self._session.look(self._stop)
                for running in list(self._running.values()):
                    running.purge.look(time.monotonic())
        except Exception:
            log.exception("The queries are looked after no more")
        finally:
            self._session.end()

    def _own_engine(self, stop: threading.Event) -> SparkProcess:
        spark_log = Path(self._config.state_dir) / "spark.log"
        log.info("Starting Spark (its own log: %s)", spark_log)
        return Engine.start(
            f"penstock sql {self._config.service_id}",
            master=self._config.master,
            conf=self._config.spark_conf,
            log=spark_log,
            stop=stop,
        )


def health_of(statuses: list[QueryStatus]) -> QueryHealth:
    """One word for all stages of a query."""
    failures = tuple(one.failure for one in statuses if one.failure is not None)
    rows = sum(one.rows for one in statuses)
    lags = [one.lag for one in statuses if one.lag is not None]
    lag = sum(lags) if lags else None
    if any(one.state == FAILED for one in statuses):
        return QueryHealth(state="ERROR", failures=failures, rows=rows, lag=lag)
    runs = all(one.state == RUNNING for one in statuses)
    state: QueryState = "RUNNING" if runs else "REBALANCING"
    return QueryHealth(state=state, failures=failures, rows=rows, lag=lag)
