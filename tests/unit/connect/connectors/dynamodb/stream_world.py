"""A table with a stream whose shards a test opens, closes, splits and trims as it likes."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.support.source_tasks import KeptOffsets

from penstock.connect.connectors.dynamodb.capture import TableCapture
from penstock.connect.connectors.dynamodb.items import Item
from penstock.connect.connectors.dynamodb.server import (
    ChangesTrimmed,
    IteratorExpired,
    ScanPage,
    ShardPage,
    TableFacts,
)
from penstock.connect.connectors.dynamodb.settings import DynamoSettings
from penstock.connect.connectors.dynamodb.shards import StreamShard
from penstock.connect.records import SourceRecord

HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000


@dataclass
class WorldShard:
    """Changes of one shard; those before `trimmed` are gone."""

    parent: str | None
    changes: list[dict[str, Any]] = field(default_factory=list)
    trimmed: int = 0
    is_closed: bool = False


class StreamWorld:
    """The server of a capture, in memory; requests are counted by what they ask for."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.label = "first"
        self.items: dict[str, Item] = {}
        self.shards_by_id: dict[str, WorldShard] = {"s1": WorldShard(None)}
        self.expired: set[str] = set()
        self.asked: list[str] = []
        self._sequence = 0

    def put(self, shard: str, key: str, name: str = "INSERT", at_ms: int | None = None) -> None:
        """A change of an item."""
        self._sequence += 1
        image = {"id": {"S": key}, "n": {"N": str(self._sequence)}}
        at = datetime.fromtimestamp((self.now_ms if at_ms is None else at_ms) / 1000, UTC)
        found = {
            "Keys": {"id": {"S": key}},
            "SequenceNumber": str(self._sequence),
            "ApproximateCreationDateTime": at,
            ("OldImage" if name == "REMOVE" else "NewImage"): image,
        }
        told = {"eventID": f"e{self._sequence}", "eventName": name, "dynamodb": found}
        self.shards_by_id[shard].changes.append(told)

    def split(self, shard: str, *children: str) -> None:
        """Close a shard; its children go on."""
        self.shards_by_id[shard].is_closed = True
        self.shards_by_id |= {name: WorldShard(shard) for name in children}

    def trim(self, shard: str, count: int) -> None:
        """Remove its first changes."""
        self.shards_by_id[shard].trimmed = count

    # What a capture calls

    def table(self, name: str) -> TableFacts:
        return TableFacts(
            name=name,
            key=(("id", "S"),),
            stream_arn=f"arn/{self.label}",
            stream=self.label,
            view="NEW_AND_OLD_IMAGES",
            now_ms=self.now_ms,
        )

    def shards(self, facts: TableFacts) -> dict[str, StreamShard]:
        self.asked.append("shards")
        return {
            name: StreamShard(id=name, parent=one.parent, last=self._last(one))
            for name, one in self.shards_by_id.items()
        }

    def iterator(self, facts: TableFacts, shard: str, kind: str, sequence: str | None) -> str:
        self.asked.append(f"{kind} {shard}")
        found = self.shards_by_id[shard]
        if kind == "LATEST":
            return f"{shard}:{len(found.changes)}"
        if kind == "TRIM_HORIZON":
            return f"{shard}:{found.trimmed}"
        numbers = [one["dynamodb"]["SequenceNumber"] for one in found.changes]
        assert sequence is not None
        at = numbers.index(sequence) + (kind == "AFTER_SEQUENCE_NUMBER")
        if numbers.index(sequence) < found.trimmed:
            raise ChangesTrimmed(f"{sequence} of {shard} is beyond the trim horizon")
        return f"{shard}:{at}"

    def changes(self, facts: TableFacts, shard: str, iterator: str, count: int) -> ShardPage:
        if iterator in self.expired:
            raise IteratorExpired(f"{iterator} has expired")
        found, at = self.shards_by_id[shard], int(iterator.partition(":")[2])
        page = found.changes[at : at + count]
        is_end = found.is_closed and at + len(page) == len(found.changes)
        following = None if is_end else f"{shard}:{at + len(page)}"
        return ShardPage(changes=page, iterator=following, now_ms=self.now_ms)

    def scan(self, table: str, count: int, after: Item | None) -> ScanPage:
        first = "" if after is None else after["id"]["S"]
        names = sorted(name for name in self.items if name > first)
        page = [self.items[name] for name in names[:count]]
        more = {"id": page[-1]["id"]} if len(names) > count else None
        return ScanPage(items=page, next_key=more)

    def close(self) -> None:
        return

    @staticmethod
    def _last(shard: WorldShard) -> str | None:
        if not shard.is_closed:
            return None
        return shard.changes[-1]["dynamodb"]["SequenceNumber"] if shard.changes else "0"


class WorldRun:
    """One run of a capture; `kept` outlives it, as the offset topic does."""

    def __init__(self, world: StreamWorld, kept: KeptOffsets, **given: str) -> None:
        config = {"dynamodb.tables": "orders", "topic.prefix": "p", "stream.records.max": "2"}
        config |= {name.replace("_", "."): text for name, text in given.items()}
        self.now_s = 0.0
        self.kept = kept
        self.records: list[SourceRecord] = []
        settings = DynamoSettings.of(config)
        server: Any = world
        self.capture = TableCapture(settings, server, kept, "orders", lambda: self.now_s)

    def step(self, *, commits: bool = True) -> list[SourceRecord]:
        """What is due next, at once."""
        due_s = self.capture.due_s()
        assert due_s is not None
        self.now_s = max(self.now_s, due_s)
        found = self.capture.step()
        for one in found if commits else ():
            self.kept.keep(one)
        self.records += found
        return found

    def steps(self, count: int = 40) -> list[str]:
        """Many steps, and all that they brought: operation and key, "-" for a tombstone."""
        for _ in range(count):
            self.step()
        return self.told()

    def told(self) -> list[str]:
        return [
            f"{'-' if one.value is None else one.value['op']}{one.key['id']}"
            for one in self.records
        ]
