"""One run of a task from its first call to its last, wherever it runs; nothing of Spark is known.

secrets resolved → plug-ins made → offsets read or partitions joined → the loop → ended in order
"""

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from penstock.client.consumer.consumer import Consumer
from penstock.client.producer.loop import LoopProducer, Outcomes
from penstock.client.values import ProducerRecord
from penstock.connect.columnar.lane import takes_columns
from penstock.connect.columnar.tasks import run_columnar_sink, run_columnar_source
from penstock.connect.errors.policy import ErrorPolicy
from penstock.connect.errors.tolerating import TolerantRun
from penstock.connect.java.plugins import offer_java
from penstock.connect.plugins.contract import SinkTask, SourceTask
from penstock.connect.plugins.lookup import PluginKind, load_plugin
from penstock.connect.providers.resolving import ConfigProviders
from penstock.connect.records import SourceRecord
from penstock.connect.running.channel import TaskChannel, WorkerChannel
from penstock.connect.running.dead_letters import DeadLetterTopic
from penstock.connect.running.sink_loop import SinkContext, SinkLoop
from penstock.connect.running.source_loop import (
    AcknowledgedSender,
    Boundary,
    PollSender,
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
)
from penstock.connect.running.spec import TaskSpec
from penstock.connect.running.steps import TaskSteps
from penstock.connect.running.task_parts import (
    consumer_settings,
    load_offsets,
    offset_topic,
    subscription,
    topic_maker,
)
from penstock.connect.running.topic_creation import TopicsFirst
from penstock.connect.store.config_records import LogEntry
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
        run = _lane(spec, type(task))
        run(spec, config, task, steps, channel, stack)


def _lane(spec: TaskSpec, kind: type) -> Callable[..., None]:
    """What runs the task, by its direction and the lane it can take."""
    role = "producer" if spec.is_source else "consumer"
    client = spec.settings.client_for(role, spec.connector_config, role)
    exactly_once = spec.is_source and spec.settings.exactly_once_sources
    if takes_columns(kind, spec.connector_config, client, exactly_once=exactly_once):
        return run_columnar_source if spec.is_source else run_columnar_sink
    return _run_source if spec.is_source else _run_sink


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
    maker = topic_maker(spec)
    all_steps: SourceSteps = TopicsFirst(steps, maker) if maker.makes_any else steps
    sender = _sender(spec, task, all_steps, channel, boundary, wishes, stack)
    load_offsets(spec, known)  # After the sender: it has fenced whoever wrote before.
    task.initialize(SourceContext(config=config, offset_reader=known, transaction=wishes))
    stack.callback(task.stop)
    task.start(config)
    channel.tell_state("PAUSED" if channel.paused.is_set() else "RUNNING")
    SourceLoop(task.poll, sender, channel).run()


def _sender(
    spec: TaskSpec,
    task: SourceTask,
    steps: SourceSteps,
    channel: TaskChannel,
    boundary: Boundary,
    wishes: SourceTransactions | None,
    stack: ExitStack,
) -> PollSender[SourceRecord]:
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
        offset_topic=offset_topic(spec),
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
    return _TopicKeeper(producer, offset_topic(spec))


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


def _wait(channel: TaskChannel, pause_ms: int) -> None:
    channel.stopping.wait(pause_ms / 1000)
