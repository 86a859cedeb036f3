"""Records of a topic as the rows of a query that needs one row at a time: no state, no Spark."""

from copy import copy
from typing import Any, Final, NamedTuple

from penstock.sql.analysis.logical import LogicalQuery
from penstock.sql.asking.records import TopicRecord
from penstock.sql.formats.serdes import topic_serdes
from penstock.sql.planning.evaluating import Failed
from penstock.sql.planning.planner import Planner
from penstock.streams import SerdeError, StreamRecord, Windowed
from penstock.streams.tasks.failures import listening

TOLD_MAX: Final = 100  # Of one query: the server's own log must not be flooded.


class AnswerRow(NamedTuple):
    """The values of a row of a result, in the order of its columns."""

    values: tuple[Any, ...]
    is_tombstone: bool = False  # The row of a table's key is gone.


def is_row_by_row(logical: LogicalQuery) -> bool:
    """Whether each record gives its rows alone: no join, no group."""
    return not logical.joins and logical.grouping is None


class RowReader:
    """Makes rows of records; what cannot be read is told and passed over."""

    def __init__(self, logical: LogicalQuery, planner: Planner, failed: Failed) -> None:
        source = logical.sources[0]
        self._relation = source.relation
        self._serdes = topic_serdes(source.relation, planner.schemas)
        self._intake = planner.intake(source)
        self._results = planner.results(logical)
        self._project = planner.projection(logical)
        self._has_condition = logical.where is not None
        self._failed = failed
        self._told = 0

    def anew(self) -> "RowReader":
        """The same for another query, which has told nothing yet."""
        made = copy(self)
        made._told = 0
        return made

    def rows(self, record: TopicRecord) -> list[AnswerRow]:
        """The rows of the result that a record gives."""
        with listening(lambda reason: self._tell(record, reason)):
            return self._rows(record)

    def _tell(self, record: TopicRecord, reason: str) -> None:
        """Say what failed and for which record, but not without end."""
        self._told += 1
        if self._told <= TOLD_MAX:
            place = f"{self._relation.topic}-{record.partition}@{record.offset}"
            self._failed(f"{place}: {reason}")
        elif self._told == TOLD_MAX + 1:
            self._failed(f"{self._relation.topic}: more failures of this query are not told")

    def _rows(self, record: TopicRecord) -> list[AnswerRow]:
        try:
            read = StreamRecord(
                key=self._serdes.key.deserialize(record.key),
                value=self._serdes.value.deserialize(record.value),
                timestamp_ms=record.timestamp_ms,
                headers=record.headers,
            )
            row = self._intake(read, record.partition, record.offset).value
        except SerdeError as error:
            self._tell(record, f"it cannot be read: {error}")
            return []
        if row is None:
            return self._tombstone(read)
        return [AnswerRow(tuple(made.values())) for made in self._results(row)]

    def _tombstone(self, record: StreamRecord) -> list[AnswerRow]:
        """A table's key is gone; who has a condition may never have seen it."""
        if self._relation.kind != "TABLE" or self._has_condition:
            return []
        key = record.key.key if isinstance(record.key, Windowed) else record.key
        names = [column.name for column in self._relation.columns.keys]
        named = dict(zip(names, key, strict=True)) if key is not None else {}
        return [AnswerRow(tuple(self._project(_Missing(named)).values()), is_tombstone=True)]


class _Missing(dict[str, Any]):
    """A row that has its key alone; everything else is NULL."""

    def __missing__(self, name: str) -> None:
        return None
