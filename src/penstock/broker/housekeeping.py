"""What a broker does by the clock: retention, checkpoints, flushes and forgotten producers.

Each chore is a short synchronous step for one log; the loop yields every other millisecond, so that
a thousand partitions never hold up a request. Only flushing to disk goes to a thread, because it
alone may take seconds.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from penstock.broker.cleaning import keep_clean
from penstock.broker.context import Broker
from penstock.config.broker import BrokerConfig
from penstock.errors import KafkaStorage
from penstock.storage.log import Log

log = logging.getLogger("kafka.log.LogManager")

_EXPIRED_FILES_INTERVAL_MS = 1_000
_SLICE_S = 0.002  # How long a chore goes on before requests get their turn.
_LONGEST_PAUSE_MS = 60_000  # A changed interval is noticed at least this often.


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Something done again and again; the interval is asked for anew each time."""

    name: str
    interval_ms: Callable[[BrokerConfig], int]
    work: Callable[[Broker], Awaitable[None]]


async def keep_house(broker: Broker) -> None:
    """Run every chore until cancelled; a chore that fails says so and is tried again."""
    async with asyncio.TaskGroup() as chores:
        for chore in CHORES:
            chores.create_task(_repeat(chore, broker), name=chore.name)
        chores.create_task(keep_clean(broker), name="cleaning")


async def _repeat(chore: Chore, broker: Broker) -> None:
    loop = asyncio.get_running_loop()
    done_s = loop.time()
    while True:
        due_s = done_s + chore.interval_ms(broker.config) / 1000
        pause_s = min(due_s - loop.time(), _LONGEST_PAUSE_MS / 1000)
        if pause_s > 0:
            await asyncio.sleep(pause_s)
            continue
        try:
            await chore.work(broker)
        except (KafkaStorage, OSError) as error:
            log.error("%s failed and will be tried again: %s", chore.name, error)
        except Exception:
            log.exception("%s failed and will be tried again", chore.name)
        done_s = loop.time()


async def _each_log(broker: Broker, step: Callable[[Log, int], None]) -> None:
    loop = asyncio.get_running_loop()
    slice_s = loop.time() + _SLICE_S
    for partition in broker.partitions.hosted():
        try:
            step(partition.log, broker.now_ms())
        except (KafkaStorage, OSError) as error:
            log.error("%s: %s", partition.log.topic_partition, error)
        if loop.time() >= slice_s:
            await asyncio.sleep(0)
            slice_s = loop.time() + _SLICE_S


async def _retain(broker: Broker) -> None:
    def retain(partition_log: Log, now_ms: int) -> None:
        for removed in partition_log.retain(now_ms):
            log.info(
                "[Log partition=%s] Deleting segment %d of %d bytes: %s",
                partition_log.topic_partition,
                removed.base_offset,
                removed.size_bytes,
                removed.reason,
            )

    await _each_log(broker, retain)


async def _delete_expired_files(broker: Broker) -> None:
    def delete(partition_log: Log, now_ms: int) -> None:
        partition_log.delete_expired_files(now_ms)

    await _each_log(broker, delete)
    broker.log_dirs.delete_expired(broker.now_ms())


async def _forget_producers(broker: Broker) -> None:
    def forget(partition_log: Log, now_ms: int) -> None:
        partition_log.remove_expired_producers(now_ms)

    await _each_log(broker, forget)


async def _flush(broker: Broker) -> None:
    """Closed segments, and logs whose flush.ms has passed, go to disk in a thread."""
    now_ms = broker.now_ms()
    for partition in broker.partitions.hosted():
        partition_log = partition.log
        if partition_log.is_flush_due(now_ms):
            await _flushed(partition_log, closed_only=False)
        elif partition_log.has_unflushed_segments:
            await _flushed(partition_log, closed_only=True)


async def _flushed(partition_log: Log, *, closed_only: bool) -> None:
    try:
        await asyncio.to_thread(partition_log.flush, closed_only=closed_only)
    except KafkaStorage as error:
        log.error("%s: %s", partition_log.topic_partition, error)


async def _checkpoint_recovery_points(broker: Broker) -> None:
    broker.log_dirs.write_recovery_points()


async def _checkpoint_start_offsets(broker: Broker) -> None:
    broker.log_dirs.write_start_offsets()


async def _checkpoint_high_watermarks(broker: Broker) -> None:
    broker.log_dirs.write_high_watermarks()


async def _abort_timed_out_transactions(broker: Broker) -> None:
    broker.transactions.coordinator.abort_timed_out()
    longest_ms = broker.config.transaction_max_timeout_ms
    broker.transactions.guards.drop_older(broker.now_ms() - longest_ms)


async def _forget_transactional_ids(broker: Broker) -> None:
    broker.transactions.coordinator.forget_expired()


CHORES = (
    Chore(
        name="retention",
        interval_ms=lambda config: config.log_retention_check_interval_ms,
        work=_retain,
    ),
    Chore(
        name="delete expired files",
        interval_ms=lambda _config: _EXPIRED_FILES_INTERVAL_MS,
        work=_delete_expired_files,
    ),
    Chore(
        name="flush",
        interval_ms=lambda config: min(config.log_flush_scheduler_interval_ms, 1_000),
        work=_flush,
    ),
    Chore(
        name="recovery point checkpoint",
        interval_ms=lambda config: config.log_flush_offset_checkpoint_interval_ms,
        work=_checkpoint_recovery_points,
    ),
    Chore(
        name="log start offset checkpoint",
        interval_ms=lambda config: config.log_flush_start_offset_checkpoint_interval_ms,
        work=_checkpoint_start_offsets,
    ),
    Chore(
        name="high watermark checkpoint",
        interval_ms=lambda config: config.replica_high_watermark_checkpoint_interval_ms,
        work=_checkpoint_high_watermarks,
    ),
    Chore(
        name="transaction abort",
        interval_ms=lambda config: (
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        ),
        work=_abort_timed_out_transactions,
    ),
    Chore(
        name="transactional id expiration",
        interval_ms=lambda config: (
            config.transaction_remove_expired_transaction_cleanup_interval_ms
        ),
        work=_forget_transactional_ids,
    ),
    Chore(
        name="producer expiration",
        interval_ms=lambda config: config.producer_id_expiration_check_interval_ms,
        work=_forget_producers,
    ),
)
