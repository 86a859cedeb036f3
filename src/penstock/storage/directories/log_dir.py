"""One log directory: a disk's worth of partitions, locked for one process.

It knows which partitions lie in it, whether the last process left it cleanly, and the offsets that
process noted. Several of them together are `LogDirs`.
"""

import fcntl
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from penstock.errors import ConfigError, CorruptRecord, KafkaStorage
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories import checkpoints
from penstock.storage.directories.checkpoints import (
    Offsets,
    read_offsets,
    read_topic_id,
    write_offsets,
)
from penstock.storage.directories.descriptors import check_left_for_log
from penstock.storage.directories.disk_failure import is_lasting
from penstock.storage.directories.disk_room import DiskRoom, NoRoom, is_no_room
from penstock.storage.directories.durable_file import sync_directory
from penstock.storage.directories.meta_properties import NOBODYS, read_identity
from penstock.storage.directories.names import (
    DELETE,
    FUTURE,
    STRAY,
    leaving_name,
    parse_directory_name,
    parse_leaving_name,
)
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log
from penstock.storage.segments.files import has_records

LOCK_FILE: Final = ".lock"
_CLOSING_THREADS: Final = 16
_NOTES: Final = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.LOG_START_OFFSETS,
    checkpoints.CLEANER_OFFSETS,
)
_KRAFT_TOPIC: Final = "__cluster_metadata"  # Of an Apache Kafka that used the directory; kept.

Report = Callable[[str], None]


class LogDir:
    """`found` are the partitions on disk; those in `logs` are open."""

    def __init__(
        self,
        path: Path,
        *,
        report: Report,
        reserve_bytes: int = 0,
        warn: Report | None = None,  # None: what is wrong is reported like all else.
    ) -> None:
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        self.found: dict[TopicPartition, Path] = {}
        self.deleted: list[Path] = []  # Directories an earlier process had no time to remove.
        self.failure: str | None = None  # None: the disk works; a sentence: it never will again.
        self.on_failed: Callable[[LogDir], None] = lambda _failed: None
        self._report = report
        self._lock_fd = _lock(path)
        warn = report if warn is None else warn
        self.room = DiskRoom(path, reserve_bytes=reserve_bytes, warn=warn)
        try:
            self.room.set_up()
            self.identity = read_identity(path)
            epoch = checkpoints.take_clean_stop(path)
            self.was_clean = epoch is not None or self.identity == NOBODYS
            self.previous_broker_epoch = -1 if epoch is None else epoch
            self._noted = {name: self._read(name) for name in _NOTES}
            # Partitions that the checkpoints still name although their logs have left.
            self._outdated: dict[str, set[TopicPartition]] = {name: set() for name in _NOTES}
            # What is being written, less the partitions that were forgotten meanwhile.
            self._in_writing: dict[str, Offsets] = {name: {} for name in _NOTES}
            self._turns = Lock()  # Recovery, cleaning and notes have threads of their own.
            self._books = Lock()  # For what is noted; never held while the disk works.
            self._look_around()
        except BaseException:
            self.unlock()
            raise

    def _read(self, name: str) -> Offsets:
        try:
            return read_offsets(self.path / name)
        except (CorruptRecord, UnicodeDecodeError) as error:
            self._report(f"Going on without {name}: {error}")
            return {}

    def _look_around(self) -> None:
        for child in sorted(self.path.iterdir()):
            if not child.is_dir():
                continue
            leaving = parse_leaving_name(child.name)
            partition = parse_directory_name(child.name)
            if leaving is not None and leaving[1] in (DELETE, FUTURE):  # A copy was not finished.
                self.deleted.append(child)
            elif leaving is not None:
                self._report(f"Leaving {child} alone: it belongs to no topic; remove it by hand")
            elif partition is not None and partition.topic != _KRAFT_TOPIC:
                self.found[partition] = child

    def topic_id(self, partition: TopicPartition) -> bytes | None:
        """The id of the topic a partition on disk belongs to; None: it does not say."""
        path = self.found[partition]
        try:
            return read_topic_id(path)
        except (CorruptRecord, ValueError) as error:
            raise KafkaStorage(f"{path} cannot be opened: {error}") from error

    # Partitions

    def open_log(
        self, partition: TopicPartition, *, topic_id: bytes, config: LogConfig, now_ms: int
    ) -> Log:
        """Open a partition that is on disk; recovered first if the last process crashed.

        One that is open already may be of an older topic, too: logs are recovered before a
        broker is told what became of their topics meanwhile.
        """
        self.health()
        if (known := self.logs.get(partition)) is not None:
            known.check_topic(topic_id)
            return known
        path = self.found[partition]
        try:
            log = self.room.with_room(
                lambda: Log.open(
                    path,
                    config=config,
                    now_ms=now_ms,
                    clean=self.was_clean,
                    recovery_point=self._noted[checkpoints.RECOVERY_POINTS].get(partition, 0),
                    log_start_offset=self._noted[checkpoints.LOG_START_OFFSETS].get(partition, 0),
                    topic_id=topic_id,
                    report=self._report,
                )
            )
        except OSError as error:
            raise self._refusal(f"{path} cannot be opened", error) from error
        except (CorruptRecord, ValueError) as error:
            raise KafkaStorage(f"{path} cannot be opened: {error}") from error
        committed = self._noted[checkpoints.HIGH_WATERMARKS].get(partition, 0)
        log.high_watermark = min(max(committed, log.log_start_offset), log.log_end_offset)
        log.cleaned_offset = self._noted[checkpoints.CLEANER_OFFSETS].get(partition)
        self.take(log)
        return log

    def create_log(
        self, partition: TopicPartition, *, topic_id: bytes, config: LogConfig, now_ms: int
    ) -> Log:
        """A new, empty log; nothing that was noted of an older one of the name counts."""
        self.health()
        check_left_for_log()
        self.forget(partition)
        for name in _NOTES:
            if partition in self._outdated[name]:
                self._note(
                    name
                )  # Otherwise the next start would take old offsets for the new log's.
        path = self.path / str(partition)
        try:
            self.room.with_room(path.mkdir)
        except OSError as error:
            raise self._refusal(f"{path} cannot be made", error) from error
        try:
            log = self.room.with_room(
                lambda: Log.open(
                    path,
                    config=config,
                    now_ms=now_ms,
                    clean=True,
                    topic_id=topic_id,
                    report=self._report,
                )
            )
        except OSError as error:
            with suppress(OSError):
                remove_directory(path)  # Otherwise it would be in the way of the next attempt.
            raise self._refusal(f"{path} cannot be made", error) from error
        self.found[partition] = path
        self.take(log)
        return log

    def __contains__(self, log: Log) -> bool:
        return self.logs.get(log.topic_partition) is log

    def take(self, log: Log) -> None:
        """An open log lives here from now on."""
        self.logs[log.topic_partition] = log
        log.on_failed_disk = self.fail
        log.room = self.room
        if self.failure is not None:
            log.failure = self.failure

    def set_aside_nameless(self) -> list[Path]:
        """After a power cut: rename the logs that do not say which topic's they are.

        The first flush of a log brings its topic id to the disk. So nothing in these was ever
        promised to last, and their topics may have been made anew under the same names since. A
        recovery point says that a log was flushed before there were ids: that one stays.
        """
        if self.was_clean:
            return []
        nameless = [
            partition
            for partition, path in self.found.items()
            if not self._noted[checkpoints.RECOVERY_POINTS].get(partition)
            and (self._noted[checkpoints.LOG_START_OFFSETS].get(partition) or has_records(path))
            and self.topic_id(partition) is None
        ]
        return [self.set_aside(partition) for partition in nameless]

    # A disk that failed

    def fail(self, error: OSError) -> None:
        """The disk has failed for good: all logs on it are offline. Any thread may say so."""
        if self.failure is not None:
            return
        self.failure = f"the disk under {self.path} failed: {error.strerror or error}"
        for log in tuple(self.logs.values()):
            log.failure = self.failure
        self.on_failed(self)

    def _refusal(self, what: str, error: OSError) -> KafkaStorage:
        """What to tell of an error of the disk; one that lasts takes the directory offline."""
        if is_lasting(error):
            self.fail(error)
        kind = NoRoom if is_no_room(error) else KafkaStorage
        return kind(f"{what}: {error}")

    def health(self) -> None:
        """Raise KafkaStorage if the disk has failed."""
        if self.failure is not None:
            raise KafkaStorage(f"{self.path} is offline: {self.failure}")

    def forget(self, partition: TopicPartition) -> None:
        """The partition leaves this directory."""
        self.found.pop(partition, None)
        self.logs.pop(partition, None)
        with self._books:
            for name, noted in self._noted.items():
                before, now = noted.pop(partition, 0), self._in_writing[name].pop(partition, 0)
                if before or now:
                    self._outdated[name].add(partition)

    def set_aside(self, partition: TopicPartition) -> Path:
        """Rename a partition that belongs to no topic; nothing is deleted."""
        log = self.logs.get(partition)
        if log is None:
            path = self.found[partition]
            moved = path.rename(path.with_name(leaving_name(partition, STRAY)))
        else:
            moved = log.set_aside()
        self.forget(partition)
        return moved

    def set_aside_older(self, topic: str, topic_id: bytes) -> list[Path]:
        """Rename the logs of older topics of a name; all, so that notes are cleared only once."""
        with self._turns:
            return [
                self.set_aside(partition)
                for partition in tuple(self.found)
                if partition.topic == topic and self._known_id(partition) not in (None, topic_id)
            ]

    def _known_id(self, partition: TopicPartition) -> bytes | None:
        log = self.logs.get(partition)
        if log is not None:
            return log.topic_id
        try:
            return self.topic_id(partition)
        except KafkaStorage:
            return None  # Opening the log reports it.

    def drop(self, partition: TopicPartition) -> Path:
        """Rename a partition that is not open, to be removed with what else was deleted."""
        path = self.found[partition]
        moved = path.rename(path.with_name(leaving_name(partition, DELETE)))
        self.forget(partition)
        self.deleted.append(moved)
        return moved

    # Notes

    def write_recovery_points(self) -> None:
        self._note(checkpoints.RECOVERY_POINTS)

    def write_high_watermarks(self) -> None:
        self._note(checkpoints.HIGH_WATERMARKS)

    def write_start_offsets(self) -> None:
        self._note(checkpoints.LOG_START_OFFSETS)

    def write_cleaned_offsets(self) -> None:
        self._note(checkpoints.CLEANER_OFFSETS)

    def _note(self, name: str) -> None:
        """What was noted of partitions that are not open stays.

        It may take seconds, and partitions may be forgotten meanwhile: those are outdated again.
        """
        with self._turns:
            if self.failure is not None or self._lock_fd < 0:
                return  # A disk that failed, or one that may be another process's by now.
            with self._books:
                outdated = frozenset(self._outdated[name])
                open_logs = dict(self.logs)
                noted = self._noted[name]
                kept = {tp: at for tp, at in noted.items() if tp not in open_logs}
                present = kept | _to_note(name, open_logs)
                staying = self._in_writing[name] = dict(present)
            try:
                self.room.with_room(lambda: write_offsets(self.path / name, present))
            except OSError as error:
                raise self._refusal(f"{self.path / name} cannot be written", error) from error
            else:
                with self._books:
                    self._outdated[name] -= outdated - (present.keys() - staying.keys())
                    self._noted[name] = staying
            finally:
                self._in_writing[name] = {}

    # Leaving

    def close(self, broker_epoch: int) -> None:
        """Close every log; only where all of them are whole is a clean stop noted."""
        is_clean = self.was_clean or self.logs.keys() == self.found.keys()
        is_clean = all(self._close_logs()) and is_clean
        try:
            self.write_recovery_points()
            self.write_high_watermarks()
            self.write_start_offsets()
            self.write_cleaned_offsets()
            if is_clean and self.failure is None and self.identity != NOBODYS:
                self.room.with_room(lambda: checkpoints.write_clean_stop(self.path, broker_epoch))
        except (KafkaStorage, OSError) as error:
            self._report(f"{self.path} was not closed cleanly: {error}")
        finally:
            self.unlock()

    def _close_logs(self) -> list[bool]:
        """Whether each is whole; several at once, because a disk flushes many as fast as one."""
        logs = list(self.logs.values())
        if len(logs) < 2:
            return [self._close_log(log) for log in logs]
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_CLOSING_THREADS, "log-closing") as pool:
            return list(pool.map(self._close_log, logs))

    def _close_log(self, log: Log) -> bool:
        try:
            log.close()
        except KafkaStorage as error:
            self._report(f"{log.topic_partition} was not closed cleanly: {error}")
        return log.is_closed

    def unlock(self) -> None:
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            os.close(fd)


def _to_note(name: str, logs: Mapping[TopicPartition, Log]) -> Offsets:
    """What a file says of the logs that are open."""
    match name:
        case checkpoints.RECOVERY_POINTS:
            return {partition: log.recovery_point for partition, log in logs.items()}
        case checkpoints.HIGH_WATERMARKS:
            return {partition: log.high_watermark for partition, log in logs.items()}
        case checkpoints.LOG_START_OFFSETS:  # Where the first segment's name does not say it.
            return {
                partition: log.log_start_offset
                for partition, log in logs.items()
                if log.log_start_offset > log.row.first.base_offset
            }
        case _:  # How far the logs are compacted; only of those that ever were.
            return {
                partition: log.cleaned_offset
                for partition, log in logs.items()
                if log.cleaned_offset is not None
            }


def _lock(path: Path) -> int:
    """Hold the directory; two kinds of lock, because Apache Kafka's (POSIX) is not ours (BSD)."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        fd = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"log.dirs: {path} is not a directory; name one") from None
    except OSError as error:
        raise ConfigError(
            f"log.dirs: {path} cannot be written ({error.strerror}); give this user the right to, "
            "or choose another directory"
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise ConfigError(
            f"log.dirs: {path} is in use by another process; stop that one, or choose another "
            "directory"
        ) from None
    return fd


def remove_directory(path: Path) -> None:
    """Remove a partition's directory, which holds only files."""
    for child in path.iterdir():
        child.unlink()
    path.rmdir()
    sync_directory(path.parent)
