"""The sink of `format("penstock")`: rows to topics, exactly once or at least once.

A stream writes each batch exactly once, also when driver, worker or broker die at any moment; see
`transactional` for how. A batch write is all or nothing: no reader of committed records sees any of
its rows before all are stored, and attempts of tasks that failed leave nothing. It cannot know that
an earlier run of the same program wrote the same rows, and should the driver die while it ends the
transactions of several tasks, some are committed and the others aborted by their timeout.
So is that of a task which Spark kills only after the driver has cleared up behind a failed job.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from penstock.client.wire.cluster import ClusterClient
from penstock.client.wire.transaction_control import OpenTransaction, end_all
from penstock.spark.options import OptionError, WriteOptions
from penstock.spark.sink.schema import RecordColumns, columns_of
from penstock.spark.sink.settings import SinkSettings, sink_settings
from penstock.spark.sink.task import (
    connected,
    first_rows,
    write_in_transaction,
    write_plainly,
)
from penstock.spark.sink.transactional import (
    BatchDecision,
    BatchLedger,
    BatchOutcome,
    DeliveryError,
    QueryNames,
    must_write,
    next_decision,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_QUERY_ID, _BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
_EXACTLY_ONCE = "exactly-once"


@dataclass(frozen=True, kw_only=True)
class TaskWrote(WriterCommitMessage):
    """What a task tells the driver."""

    task: int
    query_id: str | None  # None: the write is no stream.
    transaction: OpenTransaction | None = None  # None: nothing to decide.
    topic: str | None = None  # One of those written to, if any.


def batch_writer(
    options: WriteOptions, schema: "StructType", overwrite: bool
) -> DataSourceArrowWriter:
    """The writer of `df.write`."""
    if overwrite:
        raise OptionError(
            "Save mode Overwrite not allowed for penstock. Allowed save modes are Append and "
            "ErrorIfExists (default): a topic cannot be overwritten"
        )
    return BatchWriter(options, schema)


def stream_writer(
    options: WriteOptions, schema: "StructType", overwrite: bool
) -> DataSourceStreamArrowWriter:
    """The writer of `df.writeStream`; in complete mode too, rows are added, as in Spark's sink."""
    return StreamWriter(options, schema)


def _settings_of_executors(options: WriteOptions) -> Mapping[str, str]:
    """What leaves the driver; with a delegation token neither a name nor a password."""
    if not options.delegation_token:
        return options.client_settings
    from penstock.spark.executor_logins import ExecutorLogins, without_secrets

    login = ExecutorLogins(options.client_settings).current()
    return {**without_secrets(options.client_settings), **login}


class _Plan:
    """What both writers need; it goes to the workers with them."""

    def __init__(self, options: WriteOptions, schema: "StructType") -> None:
        self.exactly_once = options.delivery in (None, _EXACTLY_ONCE)
        self.prefix = options.transactional_id_prefix
        self.topic = options.topic
        self.columns: RecordColumns = columns_of(schema, options)
        self.settings: SinkSettings = sink_settings(
            _settings_of_executors(options), exactly_once=self.exactly_once
        )


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of one job."""

    def __init__(self, options: WriteOptions, schema: "StructType") -> None:
        self.plan = _Plan(options, schema)
        self.names = QueryNames(prefix=self.plan.prefix, query_id=uuid.uuid4().hex)

    def write(self, iterator: Iterator[Any]) -> TaskWrote:
        plan, task = self.plan, _task_context().partitionId()
        rows = first_rows(iterator)
        if rows is None:
            return TaskWrote(task=task, query_id=None)
        with connected(plan.settings) as cluster:
            if not plan.exactly_once:
                write_plainly(cluster, plan.settings, plan.columns, plan.topic, rows)
                return TaskWrote(task=task, query_id=None)
            open_, topic = write_in_transaction(
                cluster,
                plan.settings,
                plan.columns,
                plan.topic,
                rows,
                transactional_id=self.names.transactional_id(task),
                mark=lambda open_, topic: None,
            )
        return TaskWrote(task=task, query_id=None, transaction=open_, topic=topic)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        written = list(_written(messages).values())
        if not written:
            return
        with connected(self.plan.settings) as cluster:
            ledger = BatchLedger(cluster, self.names)
            _check_open(ledger, written, self.plan.settings)
            refused = [each for each in end_all(cluster, written, commit=True).values() if each]
        if refused:
            raise DeliveryError(
                f"{len(refused)} of {len(written)} transactions of this write were aborted while "
                f"the others were committed: {refused[0]}. Some of its rows are missing."
            )

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if not self.plan.exactly_once:
            return
        with connected(self.plan.settings) as cluster:
            end_all(cluster, _written(messages).values(), commit=False)
            BatchLedger(cluster, self.names).abort_strays()


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of one streaming query."""

    def __init__(self, options: WriteOptions, schema: "StructType") -> None:
        self.plan = _Plan(options, schema)

    def write(self, iterator: Iterator[Any]) -> TaskWrote:
        plan, context = self.plan, _task_context()
        task, query_id = context.partitionId(), _property(context, _QUERY_ID)
        rows = first_rows(iterator)
        if rows is None:
            return TaskWrote(task=task, query_id=query_id)
        with connected(plan.settings) as cluster:
            if not plan.exactly_once:
                write_plainly(cluster, plan.settings, plan.columns, plan.topic, rows)
                return TaskWrote(task=task, query_id=query_id)
            batch_id = int(_property(context, _BATCH_ID))
            return self._write_once(cluster, rows, task, query_id, batch_id)

    def _write_once(
        self, cluster: ClusterClient, rows: Iterator[Any], task: int, query_id: str, batch_id: int
    ) -> TaskWrote:
        plan = self.plan
        ledger = self.ledger(cluster, query_id)
        decision = ledger.latest()
        outcome = _finish(ledger, decision, batch_id)
        if not must_write(decision, outcome, batch_id=batch_id, task=task):
            for _ in rows:
                pass  # Spark wants to be rid of them.
            return TaskWrote(task=task, query_id=query_id)
        open_, topic = write_in_transaction(
            cluster,
            plan.settings,
            plan.columns,
            plan.topic,
            rows,
            transactional_id=ledger.names.transactional_id(task),
            mark=lambda open_, topic: ledger.mark(open_, task=task, batch_id=batch_id, topic=topic),
        )
        return TaskWrote(task=task, query_id=query_id, transaction=open_, topic=topic)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        query_id = _query_id(messages)
        if query_id is None or not self.plan.exactly_once:
            return
        with connected(self.plan.settings) as cluster:
            ledger = self.ledger(cluster, query_id)
            commit_batch(ledger, messages, batchId, self.plan.settings)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        query_id = _query_id(messages)
        if query_id is None or not self.plan.exactly_once:
            return
        with connected(self.plan.settings) as cluster:
            ledger = self.ledger(cluster, query_id)
            # Spark also calls this after a commit that failed half-way: a noted decision stands.
            decision = ledger.latest()
            decided = set(decision.transactions.values()) if decision else set()
            _finish(ledger, decision, batchId)
            written = [each for each in _written(messages).values() if each not in decided]
            end_all(cluster, written, commit=False)
            ledger.abort_strays()

    def ledger(self, cluster: ClusterClient, query_id: str) -> BatchLedger:
        return BatchLedger(cluster, QueryNames(prefix=self.plan.prefix, query_id=query_id))


_tidied: set[QueryNames] = set()


def commit_batch(
    ledger: BatchLedger,
    messages: Sequence[WriterCommitMessage | None],
    batch_id: int,
    settings: SinkSettings,
) -> None:
    """Decide about a batch that all tasks have written, or finish what was decided before."""
    written = _written(messages)
    earlier = ledger.latest()
    outcome = _finish(ledger, earlier, batch_id)
    if ledger.names not in _tidied:
        # The first batch of this process: what earlier ones left open must not hold readers up.
        # A driver that was thought dead may have decided until now, and cannot from here on, so
        # the latest decision is read again.
        ledger.abort_strays(keep=written.values())
        _tidied.add(ledger.names)
        earlier = ledger.latest()
        outcome = _finish(ledger, earlier, batch_id)
    try:
        decision = next_decision(
            earlier, outcome, batch_id=batch_id, task_count=len(messages), written=written
        )
        _check_open(ledger, decision.transactions.values() if decision else (), settings)
    except DeliveryError:
        end_all(ledger.cluster, written.values(), commit=False)
        raise
    if decision is None:
        end_all(ledger.cluster, written.values(), commit=False)
        return
    topic = next(m.topic for m in messages if isinstance(m, TaskWrote) and m.topic)
    ledger.decide(decision, topic)
    aborted = ledger.finish(decision).aborted
    if aborted:
        raise DeliveryError(
            f"The broker aborted transactions of batch {batch_id} while it was being committed. "
            "Their rows are written when the query starts again."
        )


def _finish(
    ledger: BatchLedger, decision: BatchDecision | None, batch_id: int
) -> BatchOutcome | None:
    if decision is None or decision.batch_id != batch_id:
        return None
    return ledger.finish(decision)


def _check_open(
    ledger: BatchLedger, transactions: Iterable[OpenTransaction], settings: SinkSettings
) -> None:
    """Refuse a batch with a lost transaction before its decision is noted."""
    wanted = list(transactions)
    lost = ledger.lost(wanted) if wanted else []
    if lost:
        raise DeliveryError(
            f"{len(lost)} of {len(wanted)} transactions are no longer open, among them {lost[0]}: "
            "the batch took longer than kafka.transaction.timeout.ms="
            f"{settings.transaction_timeout_ms}, or another writer uses the same ids. Nothing of "
            "the batch was committed. Set a longer timeout (brokers allow "
            "transaction.max.timeout.ms), make the batch smaller, or use another "
            "transactionalIdPrefix."
        )


def _written(messages: Sequence[WriterCommitMessage | None]) -> dict[int, OpenTransaction]:
    return {
        each.task: each.transaction
        for each in messages
        if isinstance(each, TaskWrote) and each.transaction is not None
    }


def _query_id(messages: Sequence[WriterCommitMessage | None]) -> str | None:
    return next((each.query_id for each in messages if isinstance(each, TaskWrote)), None)


def _task_context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "a writer's write() is called by a Spark task"
    return context


def _property(context: TaskContext, name: str) -> str:
    value = context.getLocalProperty(name)
    if value is None:
        raise DeliveryError(f"Spark did not tell the task its {name}.")
    return value
