"""All log directories of a broker (`log.dirs`), and the logs in them.

A partition lives in one directory; a new one goes where the fewest are. The partitions on disk are
only listed at first: each is opened when the cluster says that it belongs here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from penstock.errors import ConfigError, InconsistentTopicId, KafkaStorage
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.log_dir import LogDir, remove_directory
from penstock.storage.directories.meta_properties import (
    DirectoryIdentity,
    check_identity,
    new_directory_id,
    write_identity,
)
from penstock.storage.directories.names import FUTURE, leaving_name
from penstock.storage.directories.unfinished_moves import drop_unfinished, mark, unmark
from penstock.storage.log.config import LogConfig
from penstock.storage.log.log import Log
from penstock.storage.log.removal import leave

Report = Callable[[str], None]

_DELETE_DELAY_MS = 60_000  # Of directories an earlier process had no time to remove.


class WantedLog(NamedTuple):
    """A partition to open, on disk or new."""

    partition: TopicPartition
    topic_id: bytes
    config: LogConfig


class LogDirs:
    """Locked from `open` to `close`."""

    def __init__(
        self, dirs: Sequence[LogDir], *, now_ms: int, recovery_threads: int, report: Report
    ) -> None:
        self.dirs = tuple(dirs)
        self._now_ms = now_ms
        self._recovery_threads = recovery_threads
        self._report = report
        self._broker_epoch = -1
        self._is_leaving = False  # No further log is recovered.
        self.before_close: list[Callable[[], None]] = []  # Called to stop work on the logs.
        # Told of each disk that fails, in whatever thread noticed it; see `failed`.
        self.on_failed: Callable[[LogDir], None] = lambda _failed: None
        for found in dirs:
            found.on_failed = self._note_failure
        self._doomed = [
            (now_ms + _DELETE_DELAY_MS, path) for found in dirs for path in found.deleted
        ]

    @classmethod
    def open(
        cls,
        paths: Sequence[Path],
        *,
        now_ms: int,
        recovery_threads: int = 1,
        reserve_bytes: int = 0,
        report: Report,
        warn: Report | None = None,  # None: what is wrong is reported like all else.
    ) -> "LogDirs":
        """Lock the directories and look what is in them; ConfigError says what is wrong."""
        dirs: list[LogDir] = []
        try:
            dirs.extend(
                LogDir(Path(path), report=report, reserve_bytes=reserve_bytes, warn=warn)
                for path in paths
            )
            _check_owner(dirs)
            drop_unfinished(dirs, report)
            _check_doubles(dirs)
        except BaseException:
            for locked in dirs:
                locked.unlock()
            raise
        return cls(dirs, now_ms=now_ms, recovery_threads=recovery_threads, report=report)

    # Whose they are

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(found.path for found in self.dirs)

    @property
    def broker_id(self) -> int | None:
        """The broker these directories belong to; None: to none yet."""
        return next(
            (d.identity.broker_id for d in self.dirs if d.identity.broker_id is not None), None
        )

    @property
    def cluster_id(self) -> str | None:
        """The cluster these directories belong to; None: to none yet."""
        return next((d.identity.cluster_id for d in self.dirs if d.identity.cluster_id), None)

    @property
    def directory_ids(self) -> tuple[str, ...]:
        """The ids by which the cluster knows these disks; complete once they are claimed."""
        return tuple(d.identity.directory_id for d in self.dirs if d.identity.directory_id)

    @property
    def was_clean(self) -> bool:
        """Whether the last process left every directory as it should be."""
        return all(found.was_clean for found in self.dirs)

    @property
    def previous_broker_epoch(self) -> int:
        """The epoch of the broker that stopped cleanly; -1: it crashed, or did not say."""
        return self.dirs[0].previous_broker_epoch if self.was_clean else -1

    def claim(self, *, broker_id: int, cluster_id: str) -> None:
        """Write down whose the directories are; refused if they are somebody else's."""
        for found in self.dirs:
            check_identity(found.path, found.identity, broker_id=broker_id, cluster_id=cluster_id)
        for found in self.dirs:
            known = found.identity
            directory_id = known.directory_id or new_directory_id()
            claimed = DirectoryIdentity(broker_id, cluster_id, directory_id, known.version)
            if claimed != known:
                write = partial(write_identity, found.path, claimed, now_ms=self._now_ms)
                found.room.with_room(write)
                found.identity = claimed

    def note_broker_epoch(self, broker_epoch: int) -> None:
        """To be left behind with a clean stop."""
        self._broker_epoch = broker_epoch

    # Disks that failed

    def _note_failure(self, failed: LogDir) -> None:
        left = [str(found.path) for found in self.dirs if found.failure is None]
        self._report(f"Stopping serving logs in dir {failed.path}; left: {', '.join(left) or '-'}")
        self.on_failed(failed)

    @property
    def failed(self) -> tuple[LogDir, ...]:
        """The directories whose disks failed: their logs are neither read nor written any more."""
        return tuple(found for found in self.dirs if found.failure is not None)

    # Logs

    def found_logs(self) -> Iterator[tuple[TopicPartition, bytes | None]]:
        """The partitions on disk and the ids of their topics; None: a directory does not say."""
        for found in self.dirs:
            for partition in tuple(found.found) if found.failure is None else ():
                yield partition, found.topic_id(partition)

    def logs(self) -> Iterator[Log]:
        """The logs that are open."""
        for found in self.dirs:
            yield from tuple(found.logs.values())

    def open_log(
        self, partition: TopicPartition, *, topic_id: bytes, config: LogConfig, now_ms: int
    ) -> Log:
        """The log of a partition: open already, on disk, or new."""
        home = self._home(partition)
        if home is not None:
            try:
                return home.open_log(partition, topic_id=topic_id, config=config, now_ms=now_ms)
            except InconsistentTopicId:
                for moved in home.set_aside_older(partition.topic, topic_id):
                    self._report(
                        f"The log of an older topic {partition.topic} was renamed to {moved}"
                    )
        working = [found for found in self.dirs if found.failure is None]
        if not working:
            raise KafkaStorage("every log directory is offline")
        emptiest = min(working, key=lambda found: (found.room.is_full, len(found.found)))
        return emptiest.create_log(partition, topic_id=topic_id, config=config, now_ms=now_ms)

    def recover_logs(self, wanted: Iterable[WantedLog], *, now_ms: int) -> None:
        """After a crash, open the logs on disk, in threads: recovery reads the data.

        It may take minutes, so it is no work for an event loop. One that cannot be opened is left
        for `open_log` to complain about.
        """
        if self.was_clean:
            return  # Opening takes less than a thread does.
        there: dict[LogDir, list[WantedLog]] = {}
        for one in wanted:
            home = self._home(one.partition)
            if home is not None and one.partition not in home.logs:
                there.setdefault(home, []).append(one)
        recoveries = []
        for home, ones in there.items():
            self._report(
                f"Attempting recovery for {len(ones)} logs in {home.path} since no clean shutdown "
                "file was found"
            )
            recoveries += [
                (home, one, f"{number}/{len(ones)}") for number, one in enumerate(ones, 1)
            ]
        threads = self._recovery_threads * len(there)
        if threads < 2:
            for recovery in recoveries:
                self._recover_log(*recovery, now_ms)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads, "log-recovery") as pool:
            for recovery in recoveries:
                pool.submit(self._recover_log, *recovery, now_ms)

    def stop_recovering(self) -> None:
        """Leave the logs that are not open yet to the next start."""
        self._is_leaving = True

    def _recover_log(self, home: LogDir, one: WantedLog, number: str, now_ms: int) -> None:
        if self._is_leaving:
            return
        try:
            opened = self.open_log(
                one.partition, topic_id=one.topic_id, config=one.config, now_ms=now_ms
            )
        except (KafkaStorage, OSError) as error:
            self._report(f"{one.partition} was not recovered: {error}")
            return
        self._report(
            f"Completed load of {opened!r} with {len(opened.segments)} segments "
            f"(log {number} in {home.path})"
        )

    def _home(self, partition: TopicPartition) -> LogDir | None:
        return next((found for found in self.dirs if partition in found.found), None)

    def delete_log(self, partition: TopicPartition, *, now_ms: int) -> None:
        """Rename a partition's directory now; it is removed after the delay."""
        home = self._home(partition)
        if home is None:
            return
        log = home.logs.get(partition)
        if home.failure is not None:
            home.forget(partition)  # Its files are found again if the disk is repaired.
            return
        if log is None:
            home.set_aside(partition)
            return
        path = log.rename_for_delete()
        home.forget(partition)
        self._doomed.append((now_ms + log.config.file_delete_delay_ms, path))

    # Moving between directories

    def new_copy(self, log: Log, target: Path, *, now_ms: int) -> Log:
        """An empty log for a partition that lives in another directory, to be filled from it."""
        home = next(found for found in self.dirs if found.path == target)
        home.health()
        path = target / leaving_name(log.topic_partition, FUTURE)
        path.mkdir()
        mark(path)
        copy = Log.open(
            path,
            config=log.config,
            now_ms=now_ms,
            clean=True,
            topic_id=log.topic_id,
            report=self._report,
        )
        copy.on_failed_disk = home.fail
        copy.room = home.room
        return copy

    def take_copy(self, log: Log, copy: Log, *, now_ms: int) -> None:
        """The copy takes the log's place. First its name: a crash in between leaves two."""
        partition = log.topic_partition
        homes = {found.path: found for found in self.dirs}
        leave(copy, copy.dir.with_name(str(partition)))
        old, new = homes[log.dir.parent], homes[copy.dir.parent]
        path = log.rename_for_delete()  # If that fails, nothing has changed but the copy's name.
        old.forget(partition)
        new.found[partition] = copy.dir
        new.take(copy)
        self._doomed.append((now_ms + log.config.file_delete_delay_ms, path))
        unmark(copy.dir)

    def drop_copy(self, copy: Log, *, now_ms: int) -> None:
        """A copy that is not wanted any more."""
        if copy.failure is None:
            self._doomed.append((now_ms, copy.rename_for_delete()))

    def set_aside(self, partition: TopicPartition) -> Path:
        """Rename a partition that belongs to no topic; nothing is deleted."""
        home = self._home(partition)
        if home is None:
            raise KeyError(f"{partition} is in no log directory")
        return home.set_aside(partition)

    def set_aside_nameless(self) -> None:
        """After a power cut: rename the logs that were never flushed and belong to no known topic.

        For a broker whose records others have too, and who was away while topics came and went.
        """
        for found in self.dirs:
            for moved in found.set_aside_nameless():
                self._report(f"A power cut left a log whose topic is not known; it is {moved} now")

    def delete_expired(self, now_ms: int) -> int:
        """Remove the directories of deleted partitions whose delay is over; how many."""
        return self.remove_all(self.take_expired(now_ms))

    def take_expired(self, now_ms: int) -> list[Path]:
        """The directories of deleted partitions whose delay is over; whoever asks removes them.

        On a full disk no delay is granted: the room is wanted now.
        """
        full = {found.path for found in self.dirs if found.room.is_full}
        doomed, self._doomed = self._doomed, []
        due = []
        for due_ms, path in doomed:
            if due_ms <= now_ms or path.parent in full:
                due.append(path)
            else:
                self._doomed.append((due_ms, path))
        return due

    def remove_all(self, due: Sequence[Path]) -> int:
        """Work for a thread: each removal is flushed, and a topic may have thousands."""
        for path in due:
            try:
                remove_directory(path)
            except OSError as error:
                self._report(f"{path} could not be removed: {error}")
        return len(due)

    # Notes

    def write_recovery_points(self) -> None:
        for found in self.dirs:
            found.write_recovery_points()

    def write_high_watermarks(self) -> None:
        for found in self.dirs:
            found.write_high_watermarks()

    def write_start_offsets(self) -> None:
        for found in self.dirs:
            found.write_start_offsets()

    def write_cleaned_offsets(self) -> None:
        for found in self.dirs:
            found.write_cleaned_offsets()

    def close(self) -> None:
        """Close every log and let the directories go."""
        for stop in self.before_close:
            stop()
        for found in self.dirs:
            found.close(self._broker_epoch)


def _check_owner(dirs: Sequence[LogDir]) -> None:
    """All directories must be of one broker."""
    identified = [found for found in dirs if found.identity.broker_id is not None]
    for found in identified[1:]:
        first = identified[0]
        if found.identity[:2] != first.identity[:2]:
            raise ConfigError(
                f"log.dirs: {first.path} and {found.path} belong to different brokers or clusters; "
                "name only directories of one broker"
            )


def _check_doubles(dirs: Sequence[LogDir]) -> None:
    """No partition may be in two of them."""
    seen: dict[TopicPartition, Path] = {}
    for found in dirs:
        for partition, path in found.found.items():
            if partition in seen:
                raise ConfigError(
                    f"log.dirs: {partition} is in {seen[partition].parent} and in {path.parent}; "
                    "remove one of them"
                )
            seen[partition] = path
