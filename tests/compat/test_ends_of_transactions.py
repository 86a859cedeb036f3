"""EndTxn where there is nothing to end, as clients send it after an outage: answered as Kafka does.

librdkafka asks for an abort although its first AddPartitionsToTxn never arrived. The coordinator
then still knows the transaction before it, and an abort of a committed one is refused.
"""

from collections.abc import Callable, Iterator

import pytest
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.broker import BrokerProcess
from tests.support.outside import needs
from tests.support.processes import HOST, ServerProcess
from tests.support.waiting import eventually

from penstock.client.wire.connection import BrokerConnection
from penstock.errors import ErrorCode
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

pytestmark = pytest.mark.kafka

ID, TOPIC = "ends", "ended"
VERSION = 3  # Of EndTxn and AddPartitionsToTxn: clients before KIP-890.
PASSING = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


class OldClient:
    """Asks one server, and again what passes."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        finding = FindCoordinatorRequest(key=ID, key_type=1)
        self._settle(lambda: connection.request(finding, 3).error_code)
        made: list[InitProducerIdResponse] = []
        beginning = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)

        def begin() -> int:
            made.append(connection.request(beginning, 3))
            return made[-1].error_code

        assert self._settle(begin) == ErrorCode.NONE
        self._producer = made[-1]

    def add(self) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=self._producer.producer_id,
            v3_and_below_producer_epoch=self._producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
        )

        def code() -> int:
            answer = self._connection.request(request, VERSION)
            (result,) = answer.results_by_topic_v3_and_below
            return int(result.results_by_partition[0].partition_error_code)

        return self._settle(code)

    def end(self, *, commit: bool) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id=ID,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            committed=commit,
        )
        return self._settle(lambda: self._connection.request(request, VERSION).error_code)

    @staticmethod
    def _settle(ask: Callable[[], int]) -> ErrorCode:
        codes: list[ErrorCode] = []

        def is_settled() -> bool:
            codes.append(ErrorCode(ask()))
            return codes[-1] not in PASSING

        eventually(is_settled, timeout_s=120, what="an answer that stays")
        return codes[-1]


def history(server: ServerProcess) -> Iterator[tuple[str, ErrorCode]]:
    with BrokerConnection(HOST, server.port, "old") as connection:
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        connection.request(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5)
        client = OldClient(connection)
        for commit in (True, False):
            yield f"end before anything was added, commit={commit}", client.end(commit=commit)
        for first in (True, False):
            yield f"add before commit={first}", client.add()
            for commit in (first, first, not first):
                yield f"end as commit={commit} after {first}", client.end(commit=commit)


def test_what_cannot_be_ended_is_refused_as_kafka_refuses_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = {
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    }
    jars = needs(CURRENT)
    with BrokerProcess(tmp_path_factory.mktemp("ours"), settings, broker_id=1) as penstock:
        penstock.start()
        ours = list(history(penstock))
    with KafkaProcess(jars, tmp_path_factory.mktemp("theirs"), settings) as kafka:
        kafka.start()
        theirs = list(history(kafka))
    assert ours == theirs
    assert ("end as commit=False after True", ErrorCode.INVALID_TXN_STATE) in theirs
