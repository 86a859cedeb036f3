"""EndTxn: commit or abort."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import boolean, int16, int32, int64, string


class EndTxnRequest(Request, api=ApiKey.END_TXN):
    """The transaction and how it ends."""

    transactional_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    committed: bool = boolean("0+")


class EndTxnResponse(Response, api=ApiKey.END_TXN):
    """From version 5 on with the epoch for the next transaction (KIP-890)."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
