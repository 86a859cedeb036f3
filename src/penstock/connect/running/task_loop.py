"""One run of a task from its first call to its last, wherever it runs; nothing of Spark is known.

secrets resolved → plug-ins made → offsets read or partitions joined → the loop → ended in order
"""

import re
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from penstock.client.admin import Admin
from penstock.client.consumer.consumer import Consumer
from penstock.client.producer.loop import LoopProducer, Outcomes
from penstock.client.values import ProducerRecord
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.errors.policy import ErrorPolicy
from penstock.connect.errors.tolerating import TolerantRun
from penstock.connect.java.plugins import offer_java
from penstock.connect.plugins.contract import SinkTask, SourceTask
from penstock.connect.plugins.lookup import PluginKind, load_plugin
from penstock.connect.providers.resolving import ConfigProviders
from penstock.connect.running.channel import TaskChannel, WorkerChannel
from penstock.connect.running.dead_letters import DeadLetterTopic
from penstock.connect.running.sink_loop import SinkContext, SinkLoop
from penstock.connect.running.source_loop import (
    AcknowledgedSender,
    Boundary,
    RecordSender,
    SourceContext,
    SourceLoop,
    SourceSteps,
    SourceTransactions,
    TransactionalSender,
)
from penstock.connect.running.source_offsets import (
    OffsetKeeper,
    SourceOffsets,
    WorkerKeeper,
    read_offsets,
)
from penstock.connect.running.spec import TaskSpec
from penstock.connect.running.steps import TaskSteps
from penstock.connect.running.topic_creation import TopicMaker, TopicsFirst, topic_rules
from penstock.connect.store.config_records import LogEntry
from penstock.connect.store.state_log import prepare_topic
from penstock.errors import PenstockError

_FLUSH_S = 60.0


def run_task(spec: TaskSpec) -> str:
    """Until the worker says stop or is gone; what ends it otherwise is told over the line."""
    channel = WorkerChannel(spec)
    try:
        run_on(spec, channel)
    except Exception as error:  # noqa: BLE001  (a plug-in may raise anything; the worker decides)
        channel.tell_failure("".join(traceback.format_exception(error)))
        return "failed"
    finally:
        channel.close()
    return "stopped"


def run_on(spec: TaskSpec, channel: TaskChannel) -> None:
    """The run itself; raises what ends it."""
    providers = ConfigProviders.of(spec.settings.given)
    config = providers.resolved(spec.task_config)
    spec = replace(spec, connector_config=providers.resolved(spec.connector_config))
    providers.close()
    offer_java(spec.settings.given)
    kind = load_plugin(PluginKind.CONNECTOR, spec.connector_config["connector.class"])
    with ExitStack() as stack:
        steps = _steps(spec, channel, stack)
        task = kind.task_class()()
        if spec.is_source:
            _run_source(spec, config, task, steps, channel, stack)
        else:
            _run_sink(spec, config, task, steps, channel, stack)


def _steps(spec: TaskSpec, channel: TaskChannel, stack: ExitStack) -> TaskSteps:
    policy = ErrorPolicy.of(spec.connector_config)
    client = spec.settings.client_for("producer", spec.connector_config, "producer")
    letters = DeadLetterTopic(policy, client)
    stack.callback(letters.close)
    tolerant = TolerantRun(
        policy=policy,
        connector=spec.connector,
        task=spec.task,
        now_ms=lambda: time.time_ns() // 1_000_000,
        pause_ms=lambda pause: _wait(channel, pause),
        report=letters.report,
        is_stopping=channel.stopping.is_set,
    )
    steps = TaskSteps(spec.connector_config, spec.settings.given, tolerant, letters)
    stack.callback(steps.close)
    return steps


def _run_source(
    spec: TaskSpec,
    config: Mapping[str, str],
    task: SourceTask,
    steps: TaskSteps,
    channel: TaskChannel,
    stack: ExitStack,
) -> None:
    known = SourceOffsets(spec.connector)
    boundary = Boundary(spec.connector_config.get("transaction.boundary", "poll").lower())
    is_wished = spec.settings.exactly_once_sources and boundary is Boundary.CONNECTOR
    wishes = SourceTransactions() if is_wished else None
    sender = _sender(spec, task, _topics_first(spec, steps), channel, boundary, wishes, stack)
    _load_offsets(spec, known)  # After the sender: it has fenced whoever wrote before.
    task.initialize(SourceContext(config=config, offset_reader=known, transaction=wishes))
    stack.callback(task.stop)
    task.start(config)
    channel.tell_state("PAUSED" if channel.paused.is_set() else "RUNNING")
    SourceLoop(task, sender, channel).run()


def _topics_first(spec: TaskSpec, steps: TaskSteps) -> SourceSteps:
    """The steps, and topics made before records go to them, where the worker allows it."""
    rules = topic_rules(spec.connector_config) if spec.settings.creates_topics else ()
    client = spec.settings.client_for("admin", spec.connector_config, "admin")
    return TopicsFirst(steps, TopicMaker(rules, lambda: Admin(client))) if rules else steps


def _sender(
    spec: TaskSpec,
    task: SourceTask,
    steps: SourceSteps,
    channel: TaskChannel,
    boundary: Boundary,
    wishes: SourceTransactions | None,
    stack: ExitStack,
) -> RecordSender:
    settings = spec.settings
    if not settings.exactly_once_sources:
        producer = _producer(spec, stack, {})
        keeper = _keeper(spec, producer, channel)
        return AcknowledgedSender(
            task,
            spec.connector,
            producer,
            steps,
            keeper,
            channel,
            flush_s=settings.offset_flush_s,
            tolerates=spec.connector_config.get("errors.tolerance") == "all",
        )
    producer = _producer(spec, stack, {"transactional.id": spec.transactional_id})
    producer.init_transactions()
    channel.verify()  # Whoever was given this task meanwhile must not be fenced for long.
    interval_ms = spec.connector_config.get("transaction.boundary.interval.ms")
    return TransactionalSender(
        task,
        spec.connector,
        producer,
        steps,
        channel,
        offset_topic=_offset_topic(spec),
        boundary=boundary,
        interval_s=int(interval_ms) / 1000 if interval_ms else settings.offset_flush_s,
        wishes=wishes,
    )


def _producer(spec: TaskSpec, stack: ExitStack, own: Mapping[str, str]) -> LoopProducer:
    settings = {
        "acks": "all",
        "enable.idempotence": "true",
        "linger.ms": "5",
        # Kafka's 16 KB are five changes with their schemas, and each batch is a request.
        "batch.size": "524288",
        "client.id": f"connector-producer-{spec.name}",
        **spec.settings.client_for("producer", spec.connector_config, "producer"),
        **own,
    }
    producer = LoopProducer(settings)
    stack.callback(producer.close, 5.0)
    return producer


def _offset_topic(spec: TaskSpec) -> str:
    """The worker's, or one that the connector has for itself."""
    topics = spec.settings.topics
    assert topics is not None
    own = spec.connector_config.get("offsets.storage.topic")
    if not own or own == topics.offsets:
        return topics.offsets
    with Admin(spec.settings.client) as admin:
        prepare_topic(
            admin,
            own,
            partitions=topics.offset_partitions,
            replication_factor=topics.offset_replicas,
        )
    return own


class _TopicKeeper:
    """At least once, offsets in a topic: the producer of the records writes them too."""

    def __init__(self, producer: LoopProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    def keep(self, records: Sequence[LogEntry]) -> None:
        outcomes: Outcomes = {}
        for at, one in enumerate(records):
            record = ProducerRecord(topic=self._topic, value=one.value, key=one.key)
            self._producer.send(record, outcomes, at)
        self._producer.flush(_FLUSH_S)
        for found in outcomes.values():
            if isinstance(found, PenstockError):
                raise found


def _keeper(spec: TaskSpec, producer: LoopProducer, channel: TaskChannel) -> OffsetKeeper:
    if spec.settings.topics is None:
        return WorkerKeeper(channel)
    return _TopicKeeper(producer, _offset_topic(spec))


def _load_offsets(spec: TaskSpec, known: SourceOffsets) -> None:
    for record in spec.offsets:
        known.take(record.key, record.value)
    if spec.settings.topics is not None:
        read_offsets(spec.settings.topics.offsets, spec.settings.client, known)
        own = spec.connector_config.get("offsets.storage.topic")
        if own and own != spec.settings.topics.offsets:
            read_offsets(own, spec.settings.client, known)


def _run_sink(
    spec: TaskSpec,
    config: Mapping[str, str],
    task: SinkTask,
    steps: TaskSteps,
    channel: TaskChannel,
    stack: ExitStack,
) -> None:
    consumer: Consumer[bytes, bytes] = Consumer(consumer_settings(spec))
    tolerates = ErrorPolicy.of(spec.connector_config).tolerates
    context = SinkContext(config, consumer, steps if tolerates else None)
    loop = SinkLoop(task, consumer, context, steps, channel, flush_s=spec.settings.offset_flush_s)
    task.initialize(context)
    stack.callback(task.stop)
    stack.callback(consumer.close)  # First: partitions go while the task can still flush.
    task.start(config)
    consumer.subscribe(subscription(spec.connector_config), loop)
    channel.tell_state("PAUSED" if channel.paused.is_set() else "RUNNING")
    loop.run()


def consumer_settings(spec: TaskSpec) -> dict[str, str]:
    """The consumer of a sink's task: the connector's group, commits by hand."""
    return {
        "auto.offset.reset": "earliest",
        "client.id": f"connector-consumer-{spec.name}",
        **spec.settings.client_for("consumer", spec.connector_config, "consumer"),
        "group.id": spec.sink_group,
        "enable.auto.commit": "false",
    }


def subscription(config: Mapping[str, str]) -> "list[str] | re.Pattern[str]":
    """The topics of a sink, by name or by pattern."""
    if config.get("topics.regex"):
        return re.compile(config["topics.regex"])
    topics = [word.strip() for word in config.get("topics", "").split(",") if word.strip()]
    if not topics:
        raise ConnectError("A sink needs topics or topics.regex.")
    return topics


def _wait(channel: TaskChannel, pause_ms: int) -> None:
    channel.stopping.wait(pause_ms / 1000)
