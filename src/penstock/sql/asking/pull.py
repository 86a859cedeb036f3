"""Pull queries: the rows of a table as it is now, or of a stream up to its present end."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from penstock.sql.analysis.pulling import PullQuery
from penstock.sql.asking.records import TopicRecord, present_records
from penstock.sql.asking.row_reader import AnswerRow, RowReader
from penstock.sql.asking.table_follower import TableFollower, TableFollowers
from penstock.sql.formats.serdes import key_serde
from penstock.sql.planning.evaluating import Failed
from penstock.sql.planning.planner import Planner

_CURRENT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Puller:
    """What pull queries are answered with."""

    client: Mapping[str, str]
    followers: TableFollowers
    failed: Failed

    def rows(self, query: PullQuery, planner: Planner) -> Iterator[AnswerRow]:
        """The rows of the answer."""
        reader = RowReader(query.logical, planner, self.failed)
        left = query.logical.limit
        for record in self._records(query, planner):
            for row in reader.rows(record):
                if row.is_tombstone:
                    continue
                if left is not None:
                    if left <= 0:
                        return
                    left -= 1
                yield row

    def _records(self, query: PullQuery, planner: Planner) -> Iterable[TopicRecord]:
        relation = query.logical.sources[0].relation
        if relation.kind == "STREAM":
            return present_records(self.client, relation.topic)
        follower = self.followers.current(relation.topic, _CURRENT_S)
        if query.keys is None:
            return follower.all()
        serde = key_serde(
            relation.columns.keys, relation.key_format, relation.topic, planner.schemas
        )
        keys = [serde.serialize(key) or b"" for key in query.keys]
        return _of_keys(follower, keys, has_windows=relation.key_window is not None)


def _of_keys(
    follower: TableFollower, keys: Iterable[bytes], *, has_windows: bool
) -> Iterator[TopicRecord]:
    """The rows of keys; the query's condition drops what only looks like one of them."""
    for key in keys:
        if has_windows:
            yield from follower.windows(key)
        else:
            found = follower.get(key)
            if found is not None:
                yield found
