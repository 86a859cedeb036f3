"""What a broker does by the clock: retention, checkpoints, flushes and forgotten producers.

Each chore is a short synchronous step for one log; the loop yields every other millisecond, so that
a thousand partitions never hold up a request. Only what waits for the disk goes to a thread,
because it may take seconds: flushes, checkpoints, the removal of what was deleted.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from penstock.broker.context import Broker
from penstock.broker.membership.image_taking import host_again
from penstock.broker.upkeep.cleaning import keep_clean
from penstock.broker.upkeep.threads import in_thread
from penstock.config.broker import BrokerConfig
from penstock.errors import KafkaStorage
from penstock.storage.directories.disk_room import NoRoom
from penstock.storage.log.log import Log

log = logging.getLogger("kafka.log.LogManager")

_EXPIRED_FILES_INTERVAL_MS = 1_000
_ROOM_INTERVAL_MS = 1_000
_SLICE_S = 0.002  # How long a chore goes on before requests get their turn.
_SEGMENTS_AT_ONCE = 20  # Segments; renaming the files of so many takes some milliseconds.
_FILES_AT_ONCE = 100
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
        except NoRoom as error:
            log.debug(
                "%s waits for room: %s", chore.name, error
            )  # The log directory has reported it.
        except (KafkaStorage, OSError) as error:
            log.error("%s failed and will be tried again: %s", chore.name, error)
        except Exception:
            log.exception("%s failed and will be tried again", chore.name)
        done_s = loop.time()


async def _each_log(broker: Broker, step: Callable[[Log, int], bool | None]) -> None:
    """One step with each log, or as many as it takes until a step says that nothing is left."""
    loop = asyncio.get_running_loop()
    slice_s = loop.time() + _SLICE_S
    for partition in broker.partitions.hosted():
        is_more: bool | None = True
        while is_more:
            is_more = _take_step(step, partition.log, broker.now_ms())
            if is_more or loop.time() >= slice_s:
                await asyncio.sleep(0)
                slice_s = loop.time() + _SLICE_S


def _take_step(
    step: Callable[[Log, int], bool | None], partition_log: Log, now_ms: int
) -> bool | None:
    try:
        return step(partition_log, now_ms)
    except NoRoom as error:
        log.debug("%s", error)
    except (KafkaStorage, OSError) as error:
        log.error("%s: %s", partition_log.topic_partition, error)
    return None


async def _retain(broker: Broker) -> None:
    await _each_log(broker, _retain_log)


def _retain_log(partition_log: Log, now_ms: int) -> bool:
    """Whether there may be more to take out."""
    gone = partition_log.retain(now_ms, count_max=_SEGMENTS_AT_ONCE)
    for removed in gone:
        log.info(
            "[Log partition=%s] Deleting segment %d of %d bytes: %s",
            partition_log.topic_partition,
            removed.base_offset,
            removed.size_bytes,
            removed.reason,
        )
    return len(gone) == _SEGMENTS_AT_ONCE


async def _watch_room(broker: Broker) -> None:
    """On a full disk run retention at once, and remove deleted files without their delay."""

    def free(partition_log: Log, now_ms: int) -> bool:
        if not partition_log.room.is_full:
            return False
        is_more = _retain_log(partition_log, now_ms)
        is_more |= _delete_some(partition_log, now_ms)
        partition_log.give_back_reserved()
        return is_more

    rooms = [found.room for found in broker.log_dirs.dirs if found.failure is None]
    has_room = [room.watch() for room in rooms]
    if not all(has_room):
        await _each_log(broker, free)
        await _remove_deleted_logs(broker)
        has_room = [room.watch() for room in rooms]
    if any(has_room):
        host_again(broker)


async def _delete_expired_files(broker: Broker) -> None:
    await _each_log(broker, _delete_some)
    await _remove_deleted_logs(broker)


def _delete_some(partition_log: Log, now_ms: int) -> bool:
    """Whether there may be more to delete."""
    removed = partition_log.delete_expired_files(now_ms, count_max=_FILES_AT_ONCE)
    return removed == _FILES_AT_ONCE


async def _remove_deleted_logs(broker: Broker) -> None:
    if due := broker.log_dirs.take_expired(broker.now_ms()):
        await asyncio.to_thread(broker.log_dirs.remove_all, due)


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
            await _flush_log(partition_log, closed_only=False)
        elif partition_log.has_unflushed_segments:
            await _flush_log(partition_log, closed_only=True)


async def _flush_log(partition_log: Log, *, closed_only: bool) -> None:
    try:
        await asyncio.to_thread(partition_log.flush, closed_only=closed_only)
    except NoRoom as error:
        log.debug("%s", error)
    except KafkaStorage as error:
        log.error("%s: %s", partition_log.topic_partition, error)


async def _checkpoint_recovery_points(broker: Broker) -> None:
    await in_thread(broker.log_dirs.write_recovery_points)


async def _checkpoint_start_offsets(broker: Broker) -> None:
    await in_thread(broker.log_dirs.write_start_offsets)


async def _checkpoint_high_watermarks(broker: Broker) -> None:
    await in_thread(broker.log_dirs.write_high_watermarks)


async def _abort_timed_out_transactions(broker: Broker) -> None:
    broker.transactions.coordinator.abort_timed_out()
    longest_ms = broker.config.transaction_max_timeout_ms
    broker.transactions.guards.drop_older(broker.now_ms() - longest_ms)


async def _forget_transactional_ids(broker: Broker) -> None:
    broker.transactions.coordinator.forget_expired()


async def _expire_tokens(broker: Broker) -> None:
    """The controller alone removes delegation tokens whose time is over."""
    tokens, controller = broker.tokens, broker.controller
    if tokens is None or controller is None or controller.is_over:
        return
    due = tokens.book(controller.image).expired(broker.now_ms())
    if due:
        await controller.remove_tokens([token.token_id for token in due])
    for token in due:
        log.info(
            "Delegation token expired for token: %s for owner: %s", token.token_id, token.owner
        )


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
        name="room on disks",
        interval_ms=lambda _config: _ROOM_INTERVAL_MS,
        work=_watch_room,
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
    Chore(
        name="delegation token expiration",
        interval_ms=lambda config: config.delegation_token_expiry_check_interval_ms,
        work=_expire_tokens,
    ),
)
