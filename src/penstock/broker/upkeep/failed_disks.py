"""What a broker does about a log directory whose disk has failed.

Nothing on that disk counts any more: the kernel may have dropped what it had not written, and no
later flush would say so. With directories left the broker goes on without the partitions that were
there; other replicas are elected to lead them. Without any left, or alone and without the
directory that holds its metadata, it ends at once: no flush, no note of a clean stop, and nobody
hears of a record again. The cluster notices within milliseconds.

The note by which the next start would trust the page cache is taken away first, so that this
broker comes back as one that may have lost records.
"""

import asyncio
import logging
from collections.abc import Callable

from penstock.broker.context import Broker
from penstock.broker.membership.boot_id import forget_boot_id
from penstock.storage.directories.log_dir import LogDir
from penstock.storage.directories.log_dirs import LogDirs

log = logging.getLogger("kafka.log.LogManager")

Halt = Callable[[], None]


class FailedDisks:
    """Told of failures from the moment the directories are open, in whatever thread."""

    def __init__(self, log_dirs: LogDirs, *, is_alone: bool, halt: Halt) -> None:
        self._log_dirs = log_dirs
        self._is_alone = is_alone
        self._halt = halt
        self._loop = asyncio.get_running_loop()
        self._broker: Broker | None = (
            None  # None: the broker is not built yet, and hosts no partition.
        )
        log_dirs.on_failed = self._take_failure

    def serve(self, broker: Broker) -> None:
        """The broker hosts partitions from now on."""
        self._broker = broker
        for failed in self._log_dirs.failed:
            self._give_up(failed)

    def _take_failure(self, failed: LogDir) -> None:
        # The note is in the first directory, which may be on a healthy disk. Without the note, the
        # next start counts as one after lost records, which is safe.
        is_noted = forget_boot_id(self._log_dirs.paths[0])
        if not is_noted:
            log.error("The note of this run could not be taken away: %s", failed.failure)
        has_no_metadata = self._is_alone and failed is self._log_dirs.dirs[0]
        if has_no_metadata or len(self._log_dirs.failed) == len(self._log_dirs.dirs):
            log.critical(
                "Shutdown broker because %s; replace the disk, or name another directory in "
                "log.dirs, and start the broker again",
                failed.failure
                if has_no_metadata
                else f"all log dirs in {', '.join(map(str, self._log_dirs.paths))} have failed: "
                f"{failed.failure}",
            )
            self._halt()
            return
        log.critical(
            "%s is offline because %s; its partitions are served by other brokers until the disk "
            "is replaced and this broker started again",
            failed.path,
            failed.failure,
        )
        self._loop.call_soon_threadsafe(self._give_up, failed)

    def _give_up(self, failed: LogDir) -> None:
        broker = self._broker
        if broker is None:
            return
        lost = broker.partitions.lose(failed)
        if lost and broker.member is not None:
            broker.member.on_partitions_lost()
