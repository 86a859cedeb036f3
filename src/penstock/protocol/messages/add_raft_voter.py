"""AddRaftVoter: a controller joins a KRaft quorum (KIP-853)."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int16, int32, string, uint16, uuid


class Listener(Struct):
    """An address of the new voter."""

    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")


class AddRaftVoterRequest(Request, api=ApiKey.ADD_RAFT_VOTER):
    """The voter to add, to the quorum of the cluster named."""

    cluster_id: str | None = string("0+", nullable=True)
    timeout_ms: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: bytes = uuid("0+")
    listeners: list[Listener] = array(Listener, "0+")
    ack_when_committed: bool = boolean("1+", default=True)


class AddRaftVoterResponse(Response, api=ApiKey.ADD_RAFT_VOTER):
    """Whether it was added."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True, ignorable=True)
