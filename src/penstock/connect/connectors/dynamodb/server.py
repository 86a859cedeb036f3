"""The calls of DynamoDB and DynamoDB Streams that a capture makes, and what their errors mean."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from penstock.connect.connectors.aws import aws_client, aws_errors
from penstock.connect.connectors.dynamodb.items import Item
from penstock.connect.connectors.dynamodb.settings import DynamoSettings
from penstock.connect.connectors.dynamodb.shards import StreamShard
from penstock.connect.errors.kinds import ConnectError

_ATTEMPTS = 3  # Of one call; the task itself is more patient.
_SHARDS_MAX = 100_000


class IteratorExpired(ConnectError):
    """An iterator that was not used for 15 minutes; a new one from the same place goes on."""


class ChangesTrimmed(ConnectError):
    """What stood behind the place that was asked for has been removed."""


class Gone(ConnectError):
    """The table, its stream or a shard is not there."""


_MEANINGS: Mapping[str, type[ConnectError]] = {
    "ExpiredIteratorException": IteratorExpired,
    "TrimmedDataAccessException": ChangesTrimmed,
    "ResourceNotFoundException": Gone,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What the server says of a table."""

    name: str
    key: tuple[tuple[str, str], ...]  # Names and types of its key's attributes.
    stream_arn: str  # Empty: it has no stream.
    stream: str  # The stream's label.
    view: str  # Which images changes have; empty: there is no stream.
    now_ms: int  # By the server's clock.


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPage:
    """Some items, and where the next ones are; None: there are no more."""

    items: list[Item]
    next_key: Item | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardPage:
    """Some changes of a shard, and the iterator behind them; None: the shard has ended."""

    changes: list[dict[str, Any]]
    iterator: str | None
    now_ms: int


class DynamoServer:
    """Two clients, one for tables and one for streams."""

    def __init__(self, settings: DynamoSettings) -> None:
        given = settings.given
        self._tables, self._streams = (
            aws_client(
                service,
                given,
                region=given["dynamodb.region"],
                url=given["dynamodb.service.endpoint"],
                attempts=_ATTEMPTS,
            )
            for service in ("dynamodb", "dynamodbstreams")
        )

    def table(self, name: str) -> TableFacts:
        """Gone where no such table is."""
        with _asked(f"describing the table {name}"):
            answer = self._tables.describe_table(TableName=name)
        found = answer["Table"]
        types = {
            one["AttributeName"]: one["AttributeType"] for one in found["AttributeDefinitions"]
        }
        stream = found.get("StreamSpecification", {})
        is_on = bool(stream.get("StreamEnabled")) and bool(found.get("LatestStreamArn"))
        names = [one["AttributeName"] for one in found["KeySchema"]]
        return TableFacts(
            name=name,
            key=tuple((one, types[one]) for one in names),
            stream_arn=found["LatestStreamArn"] if is_on else "",
            stream=found.get("LatestStreamLabel", "") if is_on else "",
            view=stream.get("StreamViewType", "") if is_on else "",
            now_ms=_server_ms(answer),
        )

    def shards(self, facts: TableFacts) -> dict[str, StreamShard]:
        """All shards that are listed, by their ids."""
        found: dict[str, StreamShard] = {}
        wanted = {"StreamArn": facts.stream_arn}
        while True:
            with _asked(f"listing the shards of the table {facts.name}"):
                told = self._streams.describe_stream(**wanted)["StreamDescription"]
            found |= {one["ShardId"]: _shard(one) for one in told["Shards"]}
            if len(found) > _SHARDS_MAX:
                raise ConnectError(
                    f"The stream of {facts.name} has more than {_SHARDS_MAX} shards."
                )
            last = told.get("LastEvaluatedShardId")
            if not last or wanted.get("ExclusiveStartShardId") == last:
                return found
            wanted["ExclusiveStartShardId"] = last

    def iterator(self, facts: TableFacts, shard: str, kind: str, sequence: str | None) -> str:
        """An iterator of a kind: LATEST, TRIM_HORIZON, AT_ or AFTER_SEQUENCE_NUMBER."""
        more = {} if sequence is None else {"SequenceNumber": sequence}
        with _asked(f"going to {kind} {sequence or ''} of the shard {shard} of {facts.name}"):
            answer = self._streams.get_shard_iterator(
                StreamArn=facts.stream_arn, ShardId=shard, ShardIteratorType=kind, **more
            )
        return str(answer["ShardIterator"])

    def changes(self, facts: TableFacts, shard: str, iterator: str, count: int) -> ShardPage:
        """At most so many changes."""
        with _asked(f"reading the shard {shard} of {facts.name}"):
            answer = self._streams.get_records(ShardIterator=iterator, Limit=count)
        return ShardPage(
            changes=answer["Records"],
            iterator=answer.get("NextShardIterator"),
            now_ms=_server_ms(answer),
        )

    def scan(self, table: str, count: int, after: Item | None) -> ScanPage:
        """At most so many items, as they are at this moment."""
        more = {} if after is None else {"ExclusiveStartKey": after}
        with _asked(f"reading items of the table {table}"):
            answer = self._tables.scan(TableName=table, Limit=count, ConsistentRead=True, **more)
        return ScanPage(items=answer["Items"], next_key=answer.get("LastEvaluatedKey") or None)

    def close(self) -> None:
        """Let go of the connections."""
        self._tables.close()
        self._streams.close()


def table_troubles(facts: TableFacts) -> list[str]:
    """Why a table's changes cannot be captured."""
    if facts.stream_arn:
        return []
    return [
        f"The table {facts.name} has no stream. Switch it on, best with NEW_AND_OLD_IMAGES, or set"
        " snapshot.mode=initial_only."
    ]


@contextmanager
def _asked(what: str) -> Iterator[None]:
    """Errors with a meaning for a capture are told apart from all others."""
    from botocore.exceptions import ClientError

    with aws_errors(what):
        try:
            yield
        except ClientError as error:
            meaning = _MEANINGS.get(error.response.get("Error", {}).get("Code", ""))
            if meaning is None:
                raise
            raise meaning(f"{what} failed: {error}") from error


def _shard(told: Mapping[str, Any]) -> StreamShard:
    numbers = told.get("SequenceNumberRange", {})
    return StreamShard(
        id=told["ShardId"],
        parent=told.get("ParentShardId") or None,
        last=numbers.get("EndingSequenceNumber") or None,
    )


def _server_ms(answer: Mapping[str, Any]) -> int:
    """When the server answered, by its own clock, which is the one that changes are dated by."""
    told = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        at = parsedate_to_datetime(told) if told else datetime.now(UTC)
    except ValueError:
        at = datetime.now(UTC)
    return int(at.timestamp() * 1000)
