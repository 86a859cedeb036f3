"""What every run needs and no run depends on: made once in the parent, before it forks.

Codecs and constructors of messages are generated when they are first used, and some modules of the
product are imported only then. In a child that would be done again for each seed.
"""

import importlib
import sys

from penstock.broker.dispatch import HANDLERS, PEER_HANDLERS
from penstock.protocol.apis import ApiKey, request_class, response_class
from penstock.protocol.messages import group_records, transaction_records
from penstock.protocol.schema import Message, Struct
from penstock.replica.fetcher import FETCH_VERSION

_SPOKEN = (
    (ApiKey.PRODUCE, 9),
    (ApiKey.PRODUCE, 12),
    (ApiKey.FETCH, 11),
    (ApiKey.FETCH, FETCH_VERSION),
    (ApiKey.LIST_OFFSETS, 5),
    (ApiKey.METADATA, 9),
    (ApiKey.API_VERSIONS, 0),
    (ApiKey.INIT_PRODUCER_ID, 4),
    (ApiKey.CREATE_TOPICS, 5),
    (ApiKey.CREATE_TOPICS, 7),
    (ApiKey.DELETE_TOPICS, 5),
    (ApiKey.DELETE_RECORDS, 2),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0),
    (ApiKey.ELECT_LEADERS, 2),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1),
    (ApiKey.FIND_COORDINATOR, 3),
    (ApiKey.JOIN_GROUP, 5),
    (ApiKey.SYNC_GROUP, 3),
    (ApiKey.HEARTBEAT, 3),
    (ApiKey.LEAVE_GROUP, 3),
    (ApiKey.OFFSET_COMMIT, 7),
    (ApiKey.OFFSET_FETCH, 7),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 3),
    (ApiKey.ADD_PARTITIONS_TO_TXN, 5),
    (ApiKey.END_TXN, 3),
    (ApiKey.END_TXN, 5),
    (ApiKey.TXN_OFFSET_COMMIT, 5),
    (ApiKey.WRITE_TXN_MARKERS, 2),
    *((key, 0) for key in PEER_HANDLERS),
)
_STORED = (
    (group_records.OffsetCommitKey, 0),
    (group_records.OffsetCommitValue, 4),
    (group_records.GroupMetadataKey, 0),
    (group_records.GroupMetadataValue, 3),
    (transaction_records.TransactionLogKey, 0),
    (transaction_records.TransactionLogValue, 1),
)
_IMPORTED_LATE = (
    "encodings.utf_16_le",
    "penstock.broker.transactions.outbox",
    "penstock.broker.transactions.reach",
    "penstock.cluster.control.following",
    "penstock.cluster.image.stream",
)


def warm_up() -> None:
    handlers = {*HANDLERS.values(), *PEER_HANDLERS.values()}
    for name in (*_IMPORTED_LATE, *(f"penstock.broker.handlers.{name}" for name in handlers)):
        importlib.import_module(name)
    for key, version in _SPOKEN:
        for message in (request_class(key), response_class(key)):
            _generate(message, version)
    for record, version in _STORED:
        _generate(record, version)


def _generate(message: type[Message], version: int) -> None:
    for one in vars(sys.modules[message.__module__]).values():
        if (
            isinstance(one, type)
            and issubclass(one, Struct)
            and one.__module__ == message.__module__
        ):
            one()
    message.decode(message().encode(version), version)
    message().encode_parts(version)
