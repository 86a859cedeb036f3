"""What a log consists of; `Log` adds what can be done with it.

The steps that are long enough for a file of their own (`flushing`, `truncation`, `removal`) work on
this, under the log's lock.
"""

from collections.abc import Callable
from pathlib import Path

from penstock.errors import KafkaStorage
from penstock.records.topic_partition import TopicPartition
from penstock.storage.directories.disk_failure import is_lasting
from penstock.storage.directories.disk_room import DiskRoom, NoRoom, is_no_room
from penstock.storage.log.config import LogConfig
from penstock.storage.log.doomed_files import DoomedFiles
from penstock.storage.log.leader_epochs import LeaderEpochs
from penstock.storage.log.recovery import LoadedLog
from penstock.storage.producers.kept import ProducerState
from penstock.storage.segments.row import SegmentRow
from penstock.storage.segments.segment import Segment


class LogState:
    """Offsets from `log_start_offset` up to before `log_end_offset`.

    What lies below `recovery_point` is on the disk. `high_watermark` is set by the partition;
    readers, retention and DeleteRecords obey it.
    """

    dir: Path
    topic_partition: TopicPartition
    config: LogConfig
    room: DiskRoom  # Of the directory the log lives in.

    def __init__(self, loaded: LoadedLog, report: Callable[[str], None]) -> None:
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.high_watermark = loaded.log_start_offset
        self.row = SegmentRow(loaded.segments)
        self.producer_state = loaded.producers
        self.epoch_history = loaded.epochs
        self.cut_count = 0  # How often the log was truncated.
        self.cleaned_offset: int | None = None  # Up to where it is compacted; None: never was.
        self.offered: tuple[Segment, ...] = ()  # Cleaned segments about to take their place.
        self.doomed = DoomedFiles()
        self.failure: str | None = None  # None: healthy; a sentence: never writable again.
        self.report = report
        # Told that the disk has failed for good; whoever keeps the directory listens.
        self.on_failed_disk: Callable[[OSError], None] = lambda _error: None

    row: SegmentRow
    producer_state: ProducerState
    epoch_history: LeaderEpochs

    def health(self) -> None:
        """Raise KafkaStorage if the log can never be written again."""
        if self.failure is not None:
            raise KafkaStorage(f"{self.topic_partition} is offline: {self.failure}")

    def refusal(self, what: str, error: OSError) -> KafkaStorage:
        """What to tell of an error of the disk; one that lasts takes the log offline."""
        if is_lasting(error):
            self.take_offline(f"its disk failed: {error}", error)
        if is_no_room(error):
            return NoRoom(f"{self.topic_partition} {what}: {error}")
        return KafkaStorage(f"{self.topic_partition} {what}: {error}")

    def take_offline(self, failure: str, error: OSError) -> None:
        """For good: nothing that was written and not flushed can be counted on."""
        if self.failure is None:
            self.failure = failure
        self.on_failed_disk(error)

    def starts_at(self, offset: int) -> None:
        """Records before the offset are gone; an OSError leaves the log as it was."""
        self.epoch_history.truncate_from_start(offset)
        self.log_start_offset = offset
        self.producer_state.move_log_start(offset)

    def ends_at(self, offset: int) -> None:
        """Records from the offset on are gone."""
        self.cut_count += 1
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.high_watermark = min(self.high_watermark, offset)
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, offset)
