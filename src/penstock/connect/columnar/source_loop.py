"""The loop of a columnar source: as the ordinary one, around batches of columns."""

from collections.abc import Sequence

from penstock.connect.columnar.contract import ColumnarSourceTask, ColumnBatch
from penstock.connect.running.channel import TaskChannel
from penstock.connect.running.source_loop import PollSender, SourceLoop


class ColumnarSourceLoop(SourceLoop[ColumnBatch]):
    """Runs until the channel says stop; raises what ends the task."""

    def __init__(
        self, task: ColumnarSourceTask, sender: PollSender[ColumnBatch], channel: TaskChannel
    ) -> None:
        super().__init__(task.poll_columns, sender, channel)

    def _count(self, polled: Sequence[ColumnBatch]) -> int:
        return sum(len(batch.values) for batch in polled)
