"""AddOffsetsToTxn: a transaction is about to commit a group's offsets."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import int16, int32, int64, string


class AddOffsetsToTxnRequest(Request, api=ApiKey.ADD_OFFSETS_TO_TXN):
    """The transaction and the group."""

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    group_id: str = string("0+")


class AddOffsetsToTxnResponse(Response, api=ApiKey.ADD_OFFSETS_TO_TXN):
    """Whether the group's offsets are now part of the transaction."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
