"""The SQL server's process: the log is replayed, queries start, requests are answered.

    listeners bound → clients made → log replayed → requests answered → Spark starts if it must

A signal takes no new connections, ends the queries that have no end, and then stops Spark; what
runs goes on with the next start.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from penstock.client.operations.brokers import describe_cluster
from penstock.client.wire.raw_cluster import cluster_for
from penstock.http.doors import guarding, server_context, serving_all
from penstock.http.server import Limits, listen
from penstock.http.service import OpenService
from penstock.http.signals import stop_on_signals
from penstock.sql.answers.entities import push_document
from penstock.sql.asking.answering import StatementAnswers
from penstock.sql.asking.connectors import ConnectorAnswers
from penstock.sql.asking.pull import Puller
from penstock.sql.asking.questions import Questions, processing_log
from penstock.sql.asking.table_follower import TableFollowers
from penstock.sql.asking.transient import Transients
from penstock.sql.language.parse import parse
from penstock.sql.language.statements import CreateSource
from penstock.sql.running.cluster_topics import ClusterTopics, ClusterWriter
from penstock.sql.running.command_topic import CommandTopic
from penstock.sql.running.connect_worker import ConnectWorker
from penstock.sql.running.engine import SqlEngine
from penstock.sql.running.peer_states import PeerStates
from penstock.sql.running.processing_log import log_stream
from penstock.sql.running.registry_schemas import RegistrySchemas
from penstock.sql.running.scope import RequestScope
from penstock.sql.running.server_group import ServerGroup
from penstock.sql.running.spark_host import SparkHost
from penstock.sql.running.surroundings import FunctionShelf
from penstock.sql.service.application import application
from penstock.sql.service.settings import SqlConfig

log = logging.getLogger("penstock.sql")

_THREADS: Final = 8
_OTHER_CONNECTIONS: Final = 500  # Beside the push queries.
_HEALTH_TIMEOUTS: Final = {"request.timeout.ms": "5000", "default.api.timeout.ms": "5000"}


async def run(config: SqlConfig) -> None:
    """Until a signal comes."""
    stopping = asyncio.Event()
    stop_on_signals(stopping)
    for warning in config.warnings:
        log.warning("%s", warning)
    async with AsyncExitStack() as stack:
        sockets = [listen(one.host, one.port) for one in config.listeners]
        for listener in sockets:
            stack.callback(listener.close)
        opened = await stack.enter_async_context(open_service(config))
        server = serving_all(
            opened.app,
            config.listeners,
            sockets,
            tls=opened.tls,
            limits=limits_of(config),
            with_sockets=True,
            with_http2=True,
        )
        ports = await stack.enter_async_context(server)
        stack.callback(opened.end_streams)
        log.info("Server up and running, on port %s", ", ".join(map(str, ports)))
        await stopping.wait()
        log.info("Shutting down the SQL server")


@asynccontextmanager
async def open_service(config: SqlConfig) -> AsyncIterator[OpenService]:
    """A server with its catalog, to be served by whoever has the sockets."""
    tls = server_context(config.tls, config.listeners)
    async with AsyncExitStack() as stack:
        guard = await stack.enter_async_context(guarding(config.access))
        threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="sql")
        _leave(stack, lambda: threads.shutdown(cancel_futures=True))
        cluster = cluster_for(config.client)
        stack.callback(cluster.close)
        commands = CommandTopic(cluster, config.client, config.service_id, config.internal_replicas)
        host = SparkHost(config)
        _leave(stack, host.close)
        topics = ClusterTopics(config.client)
        followers = TableFollowers(config.client)
        _leave(stack, followers.close)
        engine = SqlEngine(
            command_log=commands,
            topics=topics,
            host=host,
            functions=FunctionShelf(config.extension_dir).table,
            schemas=RegistrySchemas.of(config.registry_url, config.registry)
            if config.registry_url
            else None,
            defaults=config.properties,
            forget_topic=followers.forget,
            server_id=server_id(config.state_dir),
        )
        await asyncio.to_thread(commands.ensure)
        await asyncio.to_thread(engine.open)
        await asyncio.to_thread(_stream_processing_log, config, host, engine)
        servers = ServerGroup(engine, config.client, config.service_id, config.url)
        engine.elsewhere = PeerStates(lambda: servers.runner_url).health
        servers.start()
        _leave(stack, servers.close)
        writer = ClusterWriter(config.client)
        _leave(stack, writer.close)
        questions = _questions(engine, config, host, topics, followers)
        _leave(stack, questions.stop)
        answers = StatementAnswers(
            engine=engine,
            topics=topics,
            writer=writer,
            settings=config.shown,
            connectors=ConnectorAnswers(worker=_connect(config)),
            pushes=lambda: [push_document(one.id, one.text) for one in questions.pushes],
        )
        app = application(
            answers, questions, config, _cluster_id(config), threads, guard, servers=servers
        )
        yield OpenService(app=app, tls=tls, end_streams=questions.close_all)


def _stream_processing_log(config: SqlConfig, host: SparkHost, engine: SqlEngine) -> None:
    """Make a stream of the processing log, where that is wanted and nobody did."""
    told = config.processing_log
    if told.stream is None or not host.ensure_processing_log():
        return
    for statement in parse(log_stream(told.stream, told.topic)):
        assert isinstance(statement, CreateSource)
        engine.execute(statement, RequestScope())


def _questions(
    engine: SqlEngine,
    config: SqlConfig,
    host: SparkHost,
    topics: ClusterTopics,
    followers: TableFollowers,
) -> Questions:
    transients = Transients(
        engine,
        host,
        topics,
        prefix=f"_confluent-ksql-{config.service_id}",
        queries_max=config.pushes_on_spark_max,
    )
    puller = Puller(client=config.client, followers=followers, failed=processing_log.warning)
    return Questions(
        engine,
        config.client,
        puller,
        pushes_max=config.pushes_max,
        slow_s=config.slow_client_s,
        start_transient=transients.start,
    )


def _connect(config: SqlConfig) -> ConnectWorker | None:
    if not config.connect_urls:
        return None
    return ConnectWorker(urls=config.connect_urls, credentials=config.connect_user)


def limits_of(config: SqlConfig) -> Limits:
    """Room for every push query, and for the other requests."""
    return Limits(connections_max=config.pushes_max + _OTHER_CONNECTIONS)


def _leave(stack: AsyncExitStack, close: Callable[[], object]) -> None:
    """Leaving may take a while: not in the loop."""

    async def leave() -> None:
        await asyncio.to_thread(close)

    stack.push_async_callback(leave)


def server_id(state_dir: Path) -> str:
    """Names the state on this disk: servers that share it are one to the queries."""
    state_dir.mkdir(parents=True, exist_ok=True)
    path = state_dir / "server.id"
    try:
        with path.open("x") as file:
            file.write(uuid.uuid4().hex)
    except FileExistsError:
        pass
    return path.read_text().strip()


def _cluster_id(config: SqlConfig) -> Callable[[], str]:
    def ask() -> str:
        with cluster_for({**config.client, **_HEALTH_TIMEOUTS}) as cluster:
            return describe_cluster(cluster).cluster_id or ""

    return ask
