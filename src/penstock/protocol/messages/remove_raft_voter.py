"""RemoveRaftVoter: a controller leaves a KRaft quorum (KIP-853)."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import int16, int32, string, uuid


class RemoveRaftVoterRequest(Request, api=ApiKey.REMOVE_RAFT_VOTER):
    """The voter to remove, from the quorum of the cluster named."""

    cluster_id: str | None = string("0+", nullable=True)
    voter_id: int = int32("0+")
    voter_directory_id: bytes = uuid("0+")


class RemoveRaftVoterResponse(Response, api=ApiKey.REMOVE_RAFT_VOTER):
    """Whether it was removed."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, ignorable=True)
