"""The loop of a columnar sink: fetches instead of records, columns instead of lists.

Rows that cannot be columns become single records, in their place among the others.
"""

from dataclasses import dataclass
from typing import Any

from penstock.client.values import TopicPartition
from penstock.connect.columnar.contract import ColumnarSinkTask, SchemaAndColumn, ValueColumns
from penstock.connect.columnar.decoding import ColumnDecoder
from penstock.connect.columnar.fetching import PartitionRows
from penstock.connect.records import SinkRecord
from penstock.connect.running.sink_loop import SinkLoop


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Some rows of one fetch on their way to the task."""

    rows: PartitionRows
    offsets: Any
    column: SchemaAndColumn | None  # None: they are single records.


class ColumnarSinkLoop(SinkLoop):
    """Runs until the channel says stop; raises what ends the task."""

    _task: ColumnarSinkTask

    def _made(self, polled: list[Any]) -> tuple[list[Any], dict[TopicPartition, int], int]:
        decoder = ColumnDecoder(self._steps.converters.value)
        made: list[Delivery] = []
        ends: dict[TopicPartition, int] = {}
        count = 0
        for rows in polled:
            self._channel.tell_topic(rows.at.topic)
            for offsets, values in rows.columns():
                column = decoder.decode(rows.at.topic, values)
                made.append(Delivery(rows=rows, offsets=offsets, column=column))
                ends[rows.at] = int(offsets[-1]) + 1
                count += len(offsets)
        return made, ends, count

    def _deliver(self, waiting: list[Any]) -> int:
        """Hand all to the task, one delivery after the other; each is gone once it is taken."""
        count = 0
        while waiting:
            count += self._hand_over(waiting[0])
            del waiting[0]
        return count

    def _hand_over(self, delivery: Delivery) -> int:
        offsets, column = delivery.offsets, delivery.column
        if column is not None and self._task.put_columns(
            ValueColumns(
                at=delivery.rows.at, offsets=offsets, schema=column.schema, values=column.values
            )
        ):
            return len(offsets)
        records = self._single(delivery)
        self._task.put(records)
        return len(records)

    def _single(self, delivery: Delivery) -> list[SinkRecord]:
        first, last = int(delivery.offsets[0]), int(delivery.offsets[-1])
        found = (self._steps.to_sink(one) for one in delivery.rows.records(first, last))
        return [one for one in found if one is not None]

    def _partition_of(self, waiting: Any) -> TopicPartition:
        at: TopicPartition = waiting.rows.at
        return at
