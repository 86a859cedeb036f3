"""Which right each request needs, and how it is refused without it: one table for all APIs.

Handlers check what their line says, before they look whether the thing exists. A test fails
when an API is served that has no line here. T, G, C and X below are topic, group, cluster and
transactional id.
"""

from dataclasses import dataclass
from enum import Enum

from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.security.acls.rules import AclOperation as Op
from penstock.security.acls.rules import AclResourceType


class Refusal(Enum):
    """How the client learns that it may not."""

    WHOLE = "the request fails with the code"
    EACH = "each item gets the code"
    DROP = "the item is left out, and no denial is logged"
    HIDE = "the field is empty or zero, without an error"
    CLOSE = "the connection is closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredRight:
    """One right; `instead` is another that does as well, asked for only when this is missing."""

    operation: Op
    resource: AclResourceType
    refusal: Refusal
    code: ErrorCode
    when: str = ""  # The condition under which it is asked at all; empty: always.
    instead: "RequiredRight | None" = None  # A check with one of these is not logged as denied.


@dataclass(frozen=True, slots=True, kw_only=True)
class Required:
    """What one API needs in a range of versions; no checks: everybody may."""

    checks: tuple[RequiredRight, ...]
    first_version: int = 0
    last_version: int = 32767


_T, _G, _C, _X = (
    AclResourceType.TOPIC,
    AclResourceType.GROUP,
    AclResourceType.CLUSTER,
    AclResourceType.TRANSACTIONAL_ID,
)
_WHOLE, _EACH, _DROP, _HIDE = Refusal.WHOLE, Refusal.EACH, Refusal.DROP, Refusal.HIDE
_CODES = {
    _T: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    _G: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    _C: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    _X: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    AclResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    AclResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


def _check(
    operation: Op,
    resource: AclResourceType,
    refusal: Refusal,
    when: str = "",
    instead: RequiredRight | None = None,
) -> RequiredRight:
    return RequiredRight(
        operation=operation,
        resource=resource,
        refusal=refusal,
        code=_CODES[resource],
        when=when,
        instead=instead,
    )


def _needs(*checks: RequiredRight) -> tuple[Required, ...]:
    return (Required(checks=checks),)


_GROUP_MEMBER = _needs(_check(Op.READ, _G, _WHOLE))
_PEER = _needs(_check(Op.CLUSTER_ACTION, _C, Refusal.CLOSE))
_STATE_OF_SHARES = _needs(_check(Op.CLUSTER_ACTION, _C, _WHOLE))
_DESCRIBED_GROUP = _needs(
    _check(Op.DESCRIBE, _G, _EACH),
    _check(Op.DESCRIBE, _T, _EACH, when="topics its members are assigned; hides the members"),
)
_HEARTBEAT = _needs(
    _check(Op.READ, _G, _WHOLE),
    _check(Op.DESCRIBE, _T, _WHOLE, when="topics subscribed by name"),
    _check(Op.DESCRIBE, _T, _DROP, when="topics a regular expression finds"),
)
_NOTHING = _needs()

REQUIRED: dict[ApiKey, tuple[Required, ...]] = {
    ApiKey.PRODUCE: _needs(
        _check(Op.WRITE, _X, _WHOLE, when="a batch is transactional"),
        _check(Op.WRITE, _T, _EACH),
    ),
    ApiKey.FETCH: _needs(
        RequiredRight(
            operation=Op.CLUSTER_ACTION,
            resource=_C,
            refusal=_EACH,
            code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,  # A follower reads it like a consumer.
            when="a follower asks",
        ),
        _check(Op.READ, _T, _EACH, when="a consumer asks"),
    ),
    ApiKey.LIST_OFFSETS: _needs(_check(Op.DESCRIBE, _T, _EACH)),
    ApiKey.METADATA: (
        *(
            Required(
                checks=(
                    _check(Op.DESCRIBE, _T, _EACH, when="topics by name or id"),
                    _check(Op.DESCRIBE, _T, _DROP, when="all topics"),
                    _check(
                        Op.CREATE,
                        _C,
                        _EACH,
                        when="a topic would be made",
                        instead=_check(Op.CREATE, _T, _EACH),
                    ),
                    *more,
                ),
                first_version=first,
                last_version=last,
            )
            for first, last, more in (
                (0, 7, ()),
                (8, 10, (_check(Op.DESCRIBE, _C, _HIDE, when="bits of the cluster"),)),
                (11, 32767, ()),
            )
        ),
    ),
    ApiKey.OFFSET_COMMIT: _needs(_check(Op.READ, _G, _WHOLE), _check(Op.READ, _T, _EACH)),
    ApiKey.OFFSET_FETCH: (
        Required(
            checks=(
                _check(Op.DESCRIBE, _G, _WHOLE),
                _check(Op.DESCRIBE, _T, _EACH, when="topics by name"),
                _check(Op.DESCRIBE, _T, _DROP, when="all topics"),
            ),
            last_version=7,
        ),
        Required(
            checks=(
                _check(Op.DESCRIBE, _G, _EACH),
                _check(Op.DESCRIBE, _T, _EACH, when="topics by name"),
                _check(Op.DESCRIBE, _T, _DROP, when="all topics"),
            ),
            first_version=8,
        ),
    ),
    ApiKey.FIND_COORDINATOR: tuple(
        Required(
            checks=(
                _check(Op.DESCRIBE, _G, refusal, when="of a group"),
                _check(Op.DESCRIBE, _X, refusal, when="of a transaction"),
                _check(Op.CLUSTER_ACTION, _C, _WHOLE, when="of a share group's state"),
            ),
            first_version=first,
            last_version=last,
        )
        for first, last, refusal in ((0, 3, _WHOLE), (4, 32767, _EACH))
    ),
    ApiKey.JOIN_GROUP: _GROUP_MEMBER,
    ApiKey.HEARTBEAT: _GROUP_MEMBER,
    ApiKey.LEAVE_GROUP: _GROUP_MEMBER,
    ApiKey.SYNC_GROUP: _GROUP_MEMBER,
    ApiKey.DESCRIBE_GROUPS: _needs(_check(Op.DESCRIBE, _G, _EACH)),
    ApiKey.LIST_GROUPS: _needs(
        _check(Op.DESCRIBE, _C, _DROP, instead=_check(Op.DESCRIBE, _G, _DROP))
    ),
    ApiKey.SASL_HANDSHAKE: _NOTHING,
    ApiKey.API_VERSIONS: _NOTHING,
    ApiKey.SASL_AUTHENTICATE: _NOTHING,
    ApiKey.CREATE_TOPICS: _needs(
        _check(Op.CREATE, _C, _EACH, instead=_check(Op.CREATE, _T, _EACH)),
        _check(Op.DESCRIBE_CONFIGS, _T, _HIDE, when="settings in the answer"),
    ),
    ApiKey.DELETE_TOPICS: _needs(
        _check(
            Op.DELETE,
            _C,
            _EACH,
            when="asked before the two that follow, which it replaces",
            instead=_check(Op.DELETE, _T, _EACH),
        ),
        _check(Op.DESCRIBE, _T, _EACH, when="without DELETE on the cluster; hides existence"),
    ),
    ApiKey.DELETE_RECORDS: _needs(_check(Op.DELETE, _T, _EACH)),
    ApiKey.INIT_PRODUCER_ID: (
        Required(
            checks=(
                _check(Op.WRITE, _X, _WHOLE, when="with a transactional id"),
                _check(
                    Op.IDEMPOTENT_WRITE,
                    _C,
                    _WHOLE,
                    when="without a transactional id",
                    instead=_check(Op.WRITE, _T, _WHOLE, when="on any topic at all"),
                ),
                _check(Op.TWO_PHASE_COMMIT, _X, _WHOLE, when="two-phase commit is asked for"),
            ),
        ),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _needs(
        _check(Op.CLUSTER_ACTION, _C, _EACH, instead=_check(Op.DESCRIBE, _T, _EACH))
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        Required(
            checks=(
                _check(Op.WRITE, _X, _WHOLE),
                _check(Op.WRITE, _T, _EACH, when="internal topics are always refused"),
            ),
            last_version=3,
        ),
        Required(checks=(_check(Op.CLUSTER_ACTION, _C, _WHOLE),), first_version=4),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: _needs(_check(Op.WRITE, _X, _WHOLE), _check(Op.READ, _G, _WHOLE)),
    ApiKey.END_TXN: _needs(_check(Op.WRITE, _X, _WHOLE)),
    ApiKey.WRITE_TXN_MARKERS: _needs(
        _check(Op.ALTER, _C, _WHOLE, instead=_check(Op.CLUSTER_ACTION, _C, _WHOLE))
    ),
    ApiKey.TXN_OFFSET_COMMIT: _needs(
        _check(Op.WRITE, _X, _WHOLE), _check(Op.READ, _G, _WHOLE), _check(Op.READ, _T, _EACH)
    ),
    ApiKey.DESCRIBE_ACLS: _needs(_check(Op.DESCRIBE, _C, _WHOLE)),
    ApiKey.CREATE_ACLS: _needs(_check(Op.ALTER, _C, _WHOLE)),
    ApiKey.DELETE_ACLS: _needs(_check(Op.ALTER, _C, _WHOLE)),
    **{
        api: _needs(
            _check(operation, _T, _EACH, when="a topic's"),
            _check(operation, _G, _EACH, when="a group's"),
            _check(operation, _C, _EACH, when="a broker's, a logger's or a metrics subscription's"),
        )
        for api, operation in (
            (ApiKey.DESCRIBE_CONFIGS, Op.DESCRIBE_CONFIGS),
            (ApiKey.ALTER_CONFIGS, Op.ALTER_CONFIGS),
            (ApiKey.INCREMENTAL_ALTER_CONFIGS, Op.ALTER_CONFIGS),
        )
    },
    ApiKey.ALTER_REPLICA_LOG_DIRS: _needs(_check(Op.ALTER, _C, _WHOLE)),
    ApiKey.DESCRIBE_LOG_DIRS: (
        Required(checks=(_check(Op.DESCRIBE, _C, _HIDE),), last_version=2),
        Required(checks=(_check(Op.DESCRIBE, _C, _WHOLE),), first_version=3),
    ),
    ApiKey.CREATE_PARTITIONS: _needs(_check(Op.ALTER, _T, _EACH)),
    ApiKey.CREATE_DELEGATION_TOKEN: _needs(
        _check(Op.CREATE_TOKENS, AclResourceType.USER, _WHOLE, when="for another owner")
    ),
    ApiKey.RENEW_DELEGATION_TOKEN: _NOTHING,  # Its owner and its renewers may.
    ApiKey.EXPIRE_DELEGATION_TOKEN: _NOTHING,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _needs(
        _check(
            Op.DESCRIBE,
            AclResourceType.DELEGATION_TOKEN,
            _DROP,
            when="tokens of others",
            instead=_check(Op.DESCRIBE_TOKENS, AclResourceType.USER, _DROP),
        )
    ),
    ApiKey.DELETE_GROUPS: _needs(_check(Op.DELETE, _G, _EACH)),
    ApiKey.ELECT_LEADERS: _needs(_check(Op.ALTER, _C, _WHOLE)),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _needs(_check(Op.ALTER, _C, _WHOLE)),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _needs(_check(Op.DESCRIBE, _C, _WHOLE)),
    ApiKey.OFFSET_DELETE: _needs(_check(Op.DELETE, _G, _WHOLE), _check(Op.READ, _T, _EACH)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _needs(_check(Op.DESCRIBE_CONFIGS, _C, _WHOLE)),
    ApiKey.ALTER_CLIENT_QUOTAS: _needs(_check(Op.ALTER_CONFIGS, _C, _WHOLE)),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _needs(_check(Op.DESCRIBE, _C, _WHOLE)),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _needs(_check(Op.ALTER, _C, _WHOLE)),
    ApiKey.DESCRIBE_QUORUM: _needs(_check(Op.DESCRIBE, _C, _WHOLE)),
    ApiKey.UPDATE_FEATURES: _needs(_check(Op.ALTER, _C, _WHOLE)),
    ApiKey.DESCRIBE_CLUSTER: _needs(
        _check(Op.DESCRIBE, _C, _HIDE, when="bits of the cluster"),
    ),
    ApiKey.DESCRIBE_PRODUCERS: _needs(_check(Op.READ, _T, _EACH)),
    ApiKey.UNREGISTER_BROKER: _needs(_check(Op.ALTER, _C, _WHOLE)),
    ApiKey.DESCRIBE_TRANSACTIONS: _needs(
        _check(Op.DESCRIBE, _X, _EACH), _check(Op.DESCRIBE, _T, _DROP)
    ),
    ApiKey.LIST_TRANSACTIONS: _needs(_check(Op.DESCRIBE, _X, _DROP)),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _HEARTBEAT,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _DESCRIBED_GROUP,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _NOTHING,
    ApiKey.PUSH_TELEMETRY: _NOTHING,
    ApiKey.LIST_CONFIG_RESOURCES: _needs(_check(Op.DESCRIBE_CONFIGS, _C, _WHOLE)),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _needs(
        _check(Op.DESCRIBE, _T, _EACH, when="topics by name"),
        _check(Op.DESCRIBE, _T, _DROP, when="all topics"),
    ),
    ApiKey.SHARE_GROUP_HEARTBEAT: _HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE: _DESCRIBED_GROUP,
    ApiKey.SHARE_FETCH: _needs(_check(Op.READ, _G, _WHOLE), _check(Op.READ, _T, _EACH)),
    ApiKey.SHARE_ACKNOWLEDGE: _needs(_check(Op.READ, _G, _WHOLE), _check(Op.READ, _T, _EACH)),
    ApiKey.ADD_RAFT_VOTER: _needs(_check(Op.ALTER, _C, _WHOLE)),
    ApiKey.REMOVE_RAFT_VOTER: _needs(_check(Op.ALTER, _C, _WHOLE)),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _STATE_OF_SHARES,
    ApiKey.READ_SHARE_GROUP_STATE: _STATE_OF_SHARES,
    ApiKey.WRITE_SHARE_GROUP_STATE: _STATE_OF_SHARES,
    ApiKey.DELETE_SHARE_GROUP_STATE: _STATE_OF_SHARES,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _STATE_OF_SHARES,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _needs(
        _check(Op.READ, _G, _WHOLE),
        _check(Op.DESCRIBE, _T, _WHOLE, when="topics of the topology"),
        _check(
            Op.CREATE,
            _C,
            _HIDE,
            when="internal topics to be made; told as a status",
            instead=_check(Op.CREATE, _T, _HIDE),
        ),
    ),
    ApiKey.STREAMS_GROUP_DESCRIBE: _DESCRIBED_GROUP,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _needs(
        _check(Op.DESCRIBE, _G, _EACH),
        _check(Op.DESCRIBE, _T, _EACH, when="topics by name"),
        _check(Op.DESCRIBE, _T, _DROP, when="all topics"),
    ),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _needs(
        _check(Op.READ, _G, _WHOLE), _check(Op.READ, _T, _EACH)
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _needs(
        _check(Op.DELETE, _G, _WHOLE), _check(Op.READ, _T, _EACH)
    ),
    ApiKey.IMAGE_FETCH: _PEER,
    ApiKey.PARTITIONS_CHANGED: _PEER,
    ApiKey.BROKER_SHUTDOWN: _PEER,
    ApiKey.FORWARD: _PEER,
    ApiKey.REPLICA_ENDS: _PEER,
}


def required(api: ApiKey, version: int) -> tuple[RequiredRight, ...]:
    """The checks of one version; LookupError when the table has no line for it."""
    for line in REQUIRED[api]:
        if line.first_version <= version <= line.last_version:
            return line.checks
    raise LookupError(f"{api.name} has no line for version {version}")
