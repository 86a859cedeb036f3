"""One run of a task on columns; what differs from the ordinary lane, and no more.

Secrets, plug-ins and what ends a run are `running.task_loop`'s.
"""

from collections.abc import Mapping
from contextlib import ExitStack

from penstock.client.consumer.consumer import Consumer
from penstock.connect.columnar.contract import (
    ColumnarSinkTask,
    ColumnarSourceTask,
    ColumnBatch,
)
from penstock.connect.columnar.fetching import ColumnReader
from penstock.connect.columnar.lane import writer_settings
from penstock.connect.columnar.sending import (
    AcknowledgedColumns,
    ColumnWriter,
    NoteKeeper,
    TransactionalColumns,
)
from penstock.connect.columnar.sink_loop import ColumnarSinkLoop
from penstock.connect.columnar.source_loop import ColumnarSourceLoop
from penstock.connect.running.channel import TaskChannel
from penstock.connect.running.sink_loop import SinkContext
from penstock.connect.running.source_loop import Boundary, PollSender, SourceContext
from penstock.connect.running.source_offsets import OffsetKeeper, SourceOffsets, WorkerKeeper
from penstock.connect.running.spec import TaskSpec
from penstock.connect.running.steps import TaskSteps
from penstock.connect.running.task_parts import (
    consumer_settings,
    load_offsets,
    offset_topic,
    subscription,
    topic_maker,
)


def run_columnar_source(
    spec: TaskSpec,
    config: Mapping[str, str],
    task: ColumnarSourceTask,
    steps: TaskSteps,
    channel: TaskChannel,
    stack: ExitStack,
) -> None:
    """Until the channel says stop; raises what ends the task."""
    sender = _sender(spec, task, steps, channel, stack)
    known = SourceOffsets(spec.connector)
    load_offsets(spec, known)  # After the sender: it has fenced whoever wrote before.
    task.initialize(SourceContext(config=config, offset_reader=known, transaction=None))
    stack.callback(task.stop)
    task.start(config)
    channel.tell_state("PAUSED" if channel.paused.is_set() else "RUNNING")
    ColumnarSourceLoop(task, sender, channel).run()


def _sender(
    spec: TaskSpec,
    task: ColumnarSourceTask,
    steps: TaskSteps,
    channel: TaskChannel,
    stack: ExitStack,
) -> PollSender[ColumnBatch]:
    settings, ensure_topic = spec.settings, topic_maker(spec).ensure
    is_once = settings.exactly_once_sources
    client = {
        "client.id": f"connector-producer-{spec.name}",
        **settings.client_for("producer", spec.connector_config, "producer"),
    }
    writer = ColumnWriter(
        writer_settings(client, exactly_once=is_once), spec.transactional_id if is_once else None
    )
    stack.callback(writer.close)
    if not is_once:
        return AcknowledgedColumns(
            task,
            spec.connector,
            writer,
            steps.converters,
            _keeper(spec, writer, channel),
            channel,
            ensure_topic=ensure_topic,
            flush_s=settings.offset_flush_s,
        )
    channel.verify()  # Whoever was given this task meanwhile must not be fenced for long.
    return TransactionalColumns(
        task,
        spec.connector,
        writer,
        steps.converters,
        channel,
        ensure_topic=ensure_topic,
        offset_topic=offset_topic(spec),
        interval_s=_interval_s(spec),
    )


def _keeper(spec: TaskSpec, writer: ColumnWriter, channel: TaskChannel) -> OffsetKeeper:
    if spec.settings.topics is None:
        return WorkerKeeper(channel)
    return NoteKeeper(writer, offset_topic(spec))


def _interval_s(spec: TaskSpec) -> float | None:
    config = spec.connector_config
    if Boundary(config.get("transaction.boundary", "poll").lower()) is Boundary.POLL:
        return None
    given_ms = config.get("transaction.boundary.interval.ms")
    return int(given_ms) / 1000 if given_ms else spec.settings.offset_flush_s


def run_columnar_sink(
    spec: TaskSpec,
    config: Mapping[str, str],
    task: ColumnarSinkTask,
    steps: TaskSteps,
    channel: TaskChannel,
    stack: ExitStack,
) -> None:
    """Until the channel says stop; raises what ends the task."""
    settings = consumer_settings(spec)
    consumer: Consumer[bytes, bytes] = Consumer(settings)
    reader = ColumnReader(consumer, settings)
    context = SinkContext(config, reader, None)
    flush_s = spec.settings.offset_flush_s
    loop = ColumnarSinkLoop(task, reader, context, steps, channel, flush_s=flush_s)
    task.initialize(context)
    stack.callback(task.stop)
    stack.callback(reader.close)  # First: partitions go while the task can still flush.
    task.start(config)
    reader.subscribe(subscription(spec.connector_config), loop)
    channel.tell_state("PAUSED" if channel.paused.is_set() else "RUNNING")
    loop.run()
