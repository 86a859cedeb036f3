"""InitProducerId: an identity for an idempotent or transactional producer."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import boolean, int16, int32, int64, string


class InitProducerIdRequest(Request, api=ApiKey.INIT_PRODUCER_ID):
    """Asks for a new producer id, or for the next epoch of the one held."""

    transactional_id: str | None = string("0+", nullable=True)
    transaction_timeout_ms: int = int32("0+")
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable_2pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


class InitProducerIdResponse(Response, api=ApiKey.INIT_PRODUCER_ID):
    """The producer id and epoch to write with."""

    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    producer_id: int = int64("0+", default=-1)
    producer_epoch: int = int16("0+")
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
