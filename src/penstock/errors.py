"""Every Kafka error code once, and the exceptions that carry them.

    PenstockError                 everything this package raises on purpose
    ├── ConfigError               a setting that cannot be used: one sentence, exit code 1
    ├── CommandError              a command that cannot be carried out: one sentence, exit code 1
    └── ProtocolError             carries a Kafka error code and may travel to a client
        ├── UnknownServerError, OffsetOutOfRange, ...        one class per code
        └── RetriableError        the client may send the same request again
            ├── CorruptRecord, RequestTimedOut, ...
            └── InvalidMetadata   the client should refresh its metadata first
                └── NotLeaderOrFollower, UnknownTopicOrPartition, ...

The classes are named as Apache Kafka names its exceptions. The broker raises them anywhere below
`broker/dispatch.py`, which is the one place that turns them into codes; clients turn codes back
into exceptions with `error_for`.
"""

from enum import IntEnum
from typing import ClassVar


class ErrorCode(IntEnum):
    """The numbers on the wire."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133


class PenstockError(Exception):
    """Anything this package raises on purpose."""


class ConfigError(PenstockError):
    """A setting that cannot be used; the message names the key and says what to write instead."""


class CommandError(PenstockError):
    """A command that cannot be carried out; printed as one sentence, exit code 1."""


class ProtocolError(PenstockError):
    """An error with a Kafka code; the message travels where the protocol has room for one."""

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.code.name)


class RetriableError(ProtocolError):
    """The same request may succeed later."""


class InvalidMetadata(RetriableError):
    """The client's picture of the cluster is out of date."""


class UnknownServerError(ProtocolError):
    code = ErrorCode.UNKNOWN_SERVER_ERROR


class OffsetOutOfRange(ProtocolError):
    code = ErrorCode.OFFSET_OUT_OF_RANGE


class CorruptRecord(RetriableError):
    code = ErrorCode.CORRUPT_MESSAGE


class UnknownTopicOrPartition(InvalidMetadata):
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class InvalidFetchSize(ProtocolError):
    code = ErrorCode.INVALID_FETCH_SIZE


class LeaderNotAvailable(InvalidMetadata):
    code = ErrorCode.LEADER_NOT_AVAILABLE


class NotLeaderOrFollower(InvalidMetadata):
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RequestTimedOut(RetriableError):
    code = ErrorCode.REQUEST_TIMED_OUT


class BrokerNotAvailable(ProtocolError):
    code = ErrorCode.BROKER_NOT_AVAILABLE


class ReplicaNotAvailable(InvalidMetadata):
    code = ErrorCode.REPLICA_NOT_AVAILABLE


class RecordTooLarge(ProtocolError):
    code = ErrorCode.MESSAGE_TOO_LARGE


class ControllerMoved(ProtocolError):
    code = ErrorCode.STALE_CONTROLLER_EPOCH


class OffsetMetadataTooLarge(ProtocolError):
    code = ErrorCode.OFFSET_METADATA_TOO_LARGE


class NetworkFault(InvalidMetadata):
    code = ErrorCode.NETWORK_EXCEPTION


class CoordinatorLoadInProgress(RetriableError):
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailable(RetriableError):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinator(RetriableError):
    code = ErrorCode.NOT_COORDINATOR


class InvalidTopic(ProtocolError):
    code = ErrorCode.INVALID_TOPIC_EXCEPTION


class RecordBatchTooLarge(ProtocolError):
    code = ErrorCode.RECORD_LIST_TOO_LARGE


class NotEnoughReplicas(RetriableError):
    code = ErrorCode.NOT_ENOUGH_REPLICAS


class NotEnoughReplicasAfterAppend(RetriableError):
    code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class InvalidRequiredAcks(ProtocolError):
    code = ErrorCode.INVALID_REQUIRED_ACKS


class IllegalGeneration(ProtocolError):
    code = ErrorCode.ILLEGAL_GENERATION


class InconsistentGroupProtocol(ProtocolError):
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidGroupId(ProtocolError):
    code = ErrorCode.INVALID_GROUP_ID


class UnknownMemberId(ProtocolError):
    code = ErrorCode.UNKNOWN_MEMBER_ID


class InvalidSessionTimeout(ProtocolError):
    code = ErrorCode.INVALID_SESSION_TIMEOUT


class RebalanceInProgress(ProtocolError):
    code = ErrorCode.REBALANCE_IN_PROGRESS


class InvalidCommitOffsetSize(ProtocolError):
    code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE


class TopicAuthorization(ProtocolError):
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAuthorization(ProtocolError):
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class ClusterAuthorization(ProtocolError):
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class InvalidTimestamp(ProtocolError):
    code = ErrorCode.INVALID_TIMESTAMP


class UnsupportedSaslMechanism(ProtocolError):
    code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class IllegalSaslState(ProtocolError):
    code = ErrorCode.ILLEGAL_SASL_STATE


class UnsupportedVersion(ProtocolError):
    code = ErrorCode.UNSUPPORTED_VERSION


class TopicExists(ProtocolError):
    code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitions(ProtocolError):
    code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactor(ProtocolError):
    code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(ProtocolError):
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class InvalidConfiguration(ProtocolError):
    code = ErrorCode.INVALID_CONFIG


class NotController(RetriableError):
    code = ErrorCode.NOT_CONTROLLER


class InvalidRequest(ProtocolError):
    code = ErrorCode.INVALID_REQUEST


class UnsupportedForMessageFormat(ProtocolError):
    code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class PolicyViolation(ProtocolError):
    code = ErrorCode.POLICY_VIOLATION


class OutOfOrderSequence(ProtocolError):
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class DuplicateSequence(ProtocolError):
    code = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


class InvalidProducerEpoch(ProtocolError):
    code = ErrorCode.INVALID_PRODUCER_EPOCH


class InvalidTxnState(ProtocolError):
    code = ErrorCode.INVALID_TXN_STATE


class InvalidPidMapping(ProtocolError):
    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidTxnTimeout(ProtocolError):
    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class ConcurrentTransactions(RetriableError):
    code = ErrorCode.CONCURRENT_TRANSACTIONS


class TransactionCoordinatorFenced(ProtocolError):
    code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


class TransactionalIdAuthorization(ProtocolError):
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class SecurityDisabled(ProtocolError):
    code = ErrorCode.SECURITY_DISABLED


class OperationNotAttempted(ProtocolError):
    code = ErrorCode.OPERATION_NOT_ATTEMPTED


class KafkaStorage(InvalidMetadata):
    code = ErrorCode.KAFKA_STORAGE_ERROR


class LogDirNotFound(ProtocolError):
    code = ErrorCode.LOG_DIR_NOT_FOUND


class SaslAuthentication(ProtocolError):
    code = ErrorCode.SASL_AUTHENTICATION_FAILED


class UnknownProducerId(ProtocolError):
    code = ErrorCode.UNKNOWN_PRODUCER_ID


class ReassignmentInProgress(ProtocolError):
    code = ErrorCode.REASSIGNMENT_IN_PROGRESS


class DelegationTokenDisabled(ProtocolError):
    code = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


class DelegationTokenNotFound(ProtocolError):
    code = ErrorCode.DELEGATION_TOKEN_NOT_FOUND


class DelegationTokenOwnerMismatch(ProtocolError):
    code = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


class UnsupportedByAuthentication(ProtocolError):
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


class DelegationTokenAuthorization(ProtocolError):
    code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


class DelegationTokenExpired(ProtocolError):
    code = ErrorCode.DELEGATION_TOKEN_EXPIRED


class InvalidPrincipalType(ProtocolError):
    code = ErrorCode.INVALID_PRINCIPAL_TYPE


class GroupNotEmpty(ProtocolError):
    code = ErrorCode.NON_EMPTY_GROUP


class GroupIdNotFound(ProtocolError):
    code = ErrorCode.GROUP_ID_NOT_FOUND


class FetchSessionIdNotFound(RetriableError):
    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class InvalidFetchSessionEpoch(RetriableError):
    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class ListenerNotFound(InvalidMetadata):
    code = ErrorCode.LISTENER_NOT_FOUND


class TopicDeletionDisabled(ProtocolError):
    code = ErrorCode.TOPIC_DELETION_DISABLED


class FencedLeaderEpoch(InvalidMetadata):
    code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(RetriableError):
    code = ErrorCode.UNKNOWN_LEADER_EPOCH


class UnsupportedCompressionType(ProtocolError):
    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class StaleBrokerEpoch(ProtocolError):
    code = ErrorCode.STALE_BROKER_EPOCH


class OffsetNotAvailable(RetriableError):
    code = ErrorCode.OFFSET_NOT_AVAILABLE


class MemberIdRequired(ProtocolError):
    code = ErrorCode.MEMBER_ID_REQUIRED


class PreferredLeaderNotAvailable(InvalidMetadata):
    code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class GroupMaxSizeReached(ProtocolError):
    code = ErrorCode.GROUP_MAX_SIZE_REACHED


class FencedInstanceId(ProtocolError):
    code = ErrorCode.FENCED_INSTANCE_ID


class EligibleLeadersNotAvailable(InvalidMetadata):
    code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


class ElectionNotNeeded(InvalidMetadata):
    code = ErrorCode.ELECTION_NOT_NEEDED


class NoReassignmentInProgress(ProtocolError):
    code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


class GroupSubscribedToTopic(ProtocolError):
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class InvalidRecord(ProtocolError):
    code = ErrorCode.INVALID_RECORD


class UnstableOffsetCommit(RetriableError):
    code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class ThrottlingQuotaExceeded(RetriableError):
    code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class ProducerFenced(ProtocolError):
    code = ErrorCode.PRODUCER_FENCED


class ResourceNotFound(ProtocolError):
    code = ErrorCode.RESOURCE_NOT_FOUND


class DuplicateResource(ProtocolError):
    code = ErrorCode.DUPLICATE_RESOURCE


class UnacceptableCredential(ProtocolError):
    code = ErrorCode.UNACCEPTABLE_CREDENTIAL


class InconsistentVoterSet(ProtocolError):
    code = ErrorCode.INCONSISTENT_VOTER_SET


class InvalidUpdateVersion(ProtocolError):
    code = ErrorCode.INVALID_UPDATE_VERSION


class FeatureUpdateFailed(ProtocolError):
    code = ErrorCode.FEATURE_UPDATE_FAILED


class PrincipalDeserialization(ProtocolError):
    code = ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE


class SnapshotNotFound(ProtocolError):
    code = ErrorCode.SNAPSHOT_NOT_FOUND


class PositionOutOfRange(ProtocolError):
    code = ErrorCode.POSITION_OUT_OF_RANGE


class UnknownTopicId(InvalidMetadata):
    code = ErrorCode.UNKNOWN_TOPIC_ID


class DuplicateBrokerRegistration(ProtocolError):
    code = ErrorCode.DUPLICATE_BROKER_REGISTRATION


class BrokerIdNotRegistered(ProtocolError):
    code = ErrorCode.BROKER_ID_NOT_REGISTERED


class InconsistentTopicId(InvalidMetadata):
    code = ErrorCode.INCONSISTENT_TOPIC_ID


class InconsistentClusterId(ProtocolError):
    code = ErrorCode.INCONSISTENT_CLUSTER_ID


class TransactionalIdNotFound(ProtocolError):
    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class FetchSessionTopicId(RetriableError):
    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


class IneligibleReplica(ProtocolError):
    code = ErrorCode.INELIGIBLE_REPLICA


class NewLeaderElected(ProtocolError):
    code = ErrorCode.NEW_LEADER_ELECTED


class OffsetMovedToTieredStorage(ProtocolError):
    code = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE


class FencedMemberEpoch(ProtocolError):
    code = ErrorCode.FENCED_MEMBER_EPOCH


class UnreleasedInstanceId(ProtocolError):
    code = ErrorCode.UNRELEASED_INSTANCE_ID


class UnsupportedAssignor(ProtocolError):
    code = ErrorCode.UNSUPPORTED_ASSIGNOR


class StaleMemberEpoch(ProtocolError):
    code = ErrorCode.STALE_MEMBER_EPOCH


class MismatchedEndpointType(ProtocolError):
    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE


class UnsupportedEndpointType(ProtocolError):
    code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


class UnknownControllerId(ProtocolError):
    code = ErrorCode.UNKNOWN_CONTROLLER_ID


class UnknownSubscriptionId(ProtocolError):
    code = ErrorCode.UNKNOWN_SUBSCRIPTION_ID


class TelemetryTooLarge(ProtocolError):
    code = ErrorCode.TELEMETRY_TOO_LARGE


class InvalidRegistration(ProtocolError):
    code = ErrorCode.INVALID_REGISTRATION


class TransactionAbortable(ProtocolError):
    code = ErrorCode.TRANSACTION_ABORTABLE


class InvalidRecordState(ProtocolError):
    code = ErrorCode.INVALID_RECORD_STATE


class ShareSessionNotFound(RetriableError):
    code = ErrorCode.SHARE_SESSION_NOT_FOUND


class InvalidShareSessionEpoch(RetriableError):
    code = ErrorCode.INVALID_SHARE_SESSION_EPOCH


class FencedStateEpoch(ProtocolError):
    code = ErrorCode.FENCED_STATE_EPOCH


class InvalidVoterKey(ProtocolError):
    code = ErrorCode.INVALID_VOTER_KEY


class DuplicateVoter(ProtocolError):
    code = ErrorCode.DUPLICATE_VOTER


class VoterNotFound(ProtocolError):
    code = ErrorCode.VOTER_NOT_FOUND


class InvalidRegularExpression(ProtocolError):
    code = ErrorCode.INVALID_REGULAR_EXPRESSION


class RebootstrapRequired(ProtocolError):
    code = ErrorCode.REBOOTSTRAP_REQUIRED


class StreamsInvalidTopology(ProtocolError):
    code = ErrorCode.STREAMS_INVALID_TOPOLOGY


class StreamsInvalidTopologyEpoch(ProtocolError):
    code = ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH


class StreamsTopologyFenced(ProtocolError):
    code = ErrorCode.STREAMS_TOPOLOGY_FENCED


class ShareSessionLimitReached(RetriableError):
    code = ErrorCode.SHARE_SESSION_LIMIT_REACHED


def _classes(root: type[ProtocolError]) -> dict[ErrorCode, type[ProtocolError]]:
    found: dict[ErrorCode, type[ProtocolError]] = {}
    for child in root.__subclasses__():
        if "code" in vars(child):
            found[child.code] = child
        found.update(_classes(child))
    return found


_CLASS_BY_CODE = _classes(ProtocolError)


def error_for(code: int, message: str = "") -> ProtocolError:
    """The exception for a code from the wire; a code of a newer Kafka is told as it is."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return UnknownServerError(message or f"unknown error code {code}")
    return _CLASS_BY_CODE.get(known, UnknownServerError)(message)
