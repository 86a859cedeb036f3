"""Which APIs exist, in which versions, and where their messages are declared.

The one table below is the truth about versions: from the oldest that Kafka 3.9 still answers to
the newest of Kafka 4.3, so that clients from 0.10 to today find theirs. The few private APIs of
the brokers among themselves have numbers far above Kafka's. A message module is imported when its
class is first asked for. What a broker serves is for its dispatch table to say.
"""

from enum import IntEnum
from importlib import import_module
from typing import ClassVar, cast

from penstock.errors import UnsupportedVersion
from penstock.protocol.schema import Message


class ApiKey(IntEnum):
    """The number that opens every request."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    DESCRIBE_QUORUM = 55
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    GET_TELEMETRY_SUBSCRIPTIONS = 71
    PUSH_TELEMETRY = 72
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    ADD_RAFT_VOTER = 80
    REMOVE_RAFT_VOTER = 81
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    # Between the brokers of a cluster, and for nobody else.
    IMAGE_FETCH = 10000
    PARTITIONS_CHANGED = 10001
    BROKER_SHUTDOWN = 10002
    FORWARD = 10003
    REPLICA_ENDS = 10004


_FIRST_PRIVATE_KEY = 10000

# What Apache Kafka has too; the others are neither announced to clients nor served to them.
PUBLIC_KEYS = tuple(key for key in ApiKey if key < _FIRST_PRIVATE_KEY)

NEVER = 0x8000  # One above the highest version there can be.

# Lowest version, highest version, first flexible version (KIP-482).
_VERSIONS: dict[int, tuple[int, int, int]] = {
    ApiKey.PRODUCE: (0, 13, 9),
    ApiKey.FETCH: (0, 18, 12),
    ApiKey.LIST_OFFSETS: (0, 11, 6),
    ApiKey.METADATA: (0, 13, 9),
    ApiKey.OFFSET_COMMIT: (0, 10, 8),
    ApiKey.OFFSET_FETCH: (0, 10, 6),
    ApiKey.FIND_COORDINATOR: (0, 6, 3),
    ApiKey.JOIN_GROUP: (0, 9, 6),
    ApiKey.HEARTBEAT: (0, 4, 4),
    ApiKey.LEAVE_GROUP: (0, 5, 4),
    ApiKey.SYNC_GROUP: (0, 5, 4),
    ApiKey.DESCRIBE_GROUPS: (0, 6, 5),
    ApiKey.LIST_GROUPS: (0, 5, 3),
    ApiKey.SASL_HANDSHAKE: (0, 1, NEVER),
    ApiKey.API_VERSIONS: (0, 4, 3),
    ApiKey.CREATE_TOPICS: (0, 7, 5),
    ApiKey.DELETE_TOPICS: (0, 6, 4),
    ApiKey.DELETE_RECORDS: (0, 2, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 6, 2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5, 3),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4, 3),
    ApiKey.END_TXN: (0, 5, 3),
    ApiKey.WRITE_TXN_MARKERS: (0, 2, 1),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5, 3),
    ApiKey.DESCRIBE_ACLS: (0, 3, 2),
    ApiKey.CREATE_ACLS: (0, 3, 2),
    ApiKey.DELETE_ACLS: (0, 3, 2),
    ApiKey.DESCRIBE_CONFIGS: (0, 4, 4),
    ApiKey.ALTER_CONFIGS: (0, 2, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (0, 2, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (0, 5, 2),
    ApiKey.SASL_AUTHENTICATE: (0, 2, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3, 2),
    ApiKey.CREATE_DELEGATION_TOKEN: (0, 3, 2),
    ApiKey.RENEW_DELEGATION_TOKEN: (0, 2, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (0, 2, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (0, 3, 2),
    ApiKey.DELETE_GROUPS: (0, 2, 2),
    ApiKey.ELECT_LEADERS: (0, 2, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0, 0),
    ApiKey.OFFSET_DELETE: (0, 0, NEVER),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0, 0),
    ApiKey.DESCRIBE_QUORUM: (0, 2, 0),
    ApiKey.UPDATE_FEATURES: (0, 2, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 2, 0),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0, 0),
    ApiKey.UNREGISTER_BROKER: (0, 0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1, 0),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1, 0),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0, 0),
    ApiKey.PUSH_TELEMETRY: (0, 0, 0),
    ApiKey.LIST_CONFIG_RESOURCES: (0, 1, 0),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0, 0),
    ApiKey.SHARE_GROUP_HEARTBEAT: (1, 1, 0),
    ApiKey.SHARE_GROUP_DESCRIBE: (1, 1, 0),
    ApiKey.SHARE_FETCH: (1, 2, 0),
    ApiKey.SHARE_ACKNOWLEDGE: (1, 2, 0),
    ApiKey.ADD_RAFT_VOTER: (0, 1, 0),
    ApiKey.REMOVE_RAFT_VOTER: (0, 0, 0),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (0, 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE: (0, 0, 0),
    ApiKey.WRITE_SHARE_GROUP_STATE: (0, 1, 0),
    ApiKey.DELETE_SHARE_GROUP_STATE: (0, 0, 0),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (0, 1, 0),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (0, 0, 0),
    ApiKey.STREAMS_GROUP_DESCRIBE: (0, 0, 0),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (0, 1, 0),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (0, 0, 0),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (0, 0, 0),
    ApiKey.IMAGE_FETCH: (0, 0, 0),
    ApiKey.PARTITIONS_CHANGED: (0, 0, 0),
    ApiKey.BROKER_SHUTDOWN: (0, 0, 0),
    ApiKey.FORWARD: (0, 0, 0),
    ApiKey.REPLICA_ENDS: (0, 0, 0),
}

_requests: dict[int, type["Request"]] = {}
_responses: dict[int, type["Response"]] = {}


class Request(Message):
    """What a client sends; declared with `api=ApiKey.FETCH`, which brings its versions.

    A hundred megabytes of empty names would take gigabytes when decoded. A request about each
    partition of the largest clusters known, of 200,000 partitions, stays far below the bound.
    """

    api_key: ClassVar[ApiKey]
    elements_max = 500_000

    def __init_subclass__(cls, api: ApiKey) -> None:
        super().__init_subclass__()
        _adopt_versions(cls, api)
        cls.api_key = api
        _requests[api] = cls


class Response(Message):
    """What a broker answers, in the version of the request."""

    api_key: ClassVar[ApiKey]

    def __init_subclass__(cls, api: ApiKey) -> None:
        super().__init_subclass__()
        _adopt_versions(cls, api)
        cls.api_key = api
        _responses[api] = cls


def request_class(api_key: int) -> type[Request]:
    """The class of an API's requests, its module imported if need be."""
    return _requests.get(api_key) or cast(type[Request], _find(api_key, "Request"))


def response_class(api_key: int) -> type[Response]:
    """The class of an API's responses, its module imported if need be."""
    return _responses.get(api_key) or cast(type[Response], _find(api_key, "Response"))


def supported_versions(api_key: int) -> range:
    """All versions of an API that can be read and written; empty for an unknown key."""
    low, high, _ = _VERSIONS.get(api_key, (0, -1, NEVER))
    return range(low, high + 1)


def is_flexible(api_key: int, version: int) -> bool:
    """Whether messages of a version have compact lengths and tagged fields, headers included.

    Also true of versions above the highest known: a header must be read before it is refused.
    """
    known = _VERSIONS.get(api_key)
    return known is not None and version >= known[2]


def first_flexible_versions(key_count: int) -> tuple[int, ...]:
    """By API key: the version from which on `is_flexible` is true; NEVER where there is none."""
    return tuple(_VERSIONS.get(key, (0, -1, NEVER))[2] for key in range(key_count))


def _adopt_versions(cls: type[Message], api: ApiKey) -> None:
    low, high, flexible_from = _VERSIONS[api]
    cls.versions, cls.flexible_from = range(low, high + 1), flexible_from


def _find(api_key: int, suffix: str) -> type[Message]:
    if api_key not in _VERSIONS:
        raise UnsupportedVersion(f"there is no API with key {api_key}")
    name = ApiKey(api_key).name
    module = import_module(f"penstock.protocol.messages.{name.lower()}")
    return cast(type[Message], getattr(module, name.title().replace("_", "") + suffix))
