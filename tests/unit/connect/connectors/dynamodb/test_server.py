"""What the server's errors mean to a capture, and lists that come in pages."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from penstock.connect.connectors.dynamodb.server import (
    ChangesTrimmed,
    DynamoServer,
    Gone,
    IteratorExpired,
    TableFacts,
)
from penstock.connect.connectors.dynamodb.settings import DynamoSettings
from penstock.connect.errors.kinds import ConnectError, RetriableConnectError

FACTS = TableFacts(name="orders", key=(), stream_arn="arn", stream="l", view="", now_ms=0)


class Answers:
    """A client whose every call does the same."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.asked: list[dict[str, Any]] = []

    def _call(self, **wanted: Any) -> Any:
        self.asked.append(dict(wanted))
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer(wanted)

    describe_stream = get_shard_iterator = get_records = _call

    def close(self) -> None:
        return


def server(answer: Any) -> DynamoServer:
    given = {"dynamodb.tables": "orders", "topic.prefix": "p"}
    made = DynamoServer(DynamoSettings.of(given))
    made.close()
    made._streams = Answers(answer)
    return made


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        ("ExpiredIteratorException", IteratorExpired),
        ("TrimmedDataAccessException", ChangesTrimmed),
        ("ResourceNotFoundException", Gone),
        ("ProvisionedThroughputExceededException", RetriableConnectError),
        ("AccessDeniedException", ConnectError),
    ],
)
def test_errors_have_their_meaning(code: str, meaning: type[Exception]) -> None:
    error = ClientError({"Error": {"Code": code, "Message": "so"}}, "GetRecords")
    with pytest.raises(ConnectError, match="reading the shard s1 of orders failed") as raised:
        server(error).changes(FACTS, "s1", "i", 10)
    assert type(raised.value) is meaning


def test_shards_are_listed_to_the_last_page() -> None:
    pages: dict[str | None, tuple[str, str | None]] = {None: ("a", "a"), "a": ("b", None)}

    def page(wanted: dict[str, Any]) -> dict[str, Any]:
        name, last = pages[wanted.get("ExclusiveStartShardId")]
        numbers = {"StartingSequenceNumber": "1", "EndingSequenceNumber": "9"}
        shard = {"ShardId": name, "ParentShardId": "p", "SequenceNumberRange": numbers}
        return {"StreamDescription": {"Shards": [shard], "LastEvaluatedShardId": last}}

    found = server(page).shards(FACTS)
    assert [(one.id, one.parent, one.last) for one in found.values()] == [
        ("a", "p", "9"),
        ("b", "p", "9"),
    ]
