"""Forward: a client's request that another broker passed on, because this one is the controller."""

from penstock.broker.context import RequestContext
from penstock.broker.dispatch import CONTROLLER_APIS
from penstock.broker.membership.forwarding import session_of
from penstock.errors import InvalidRequest
from penstock.protocol.apis import request_class, supported_versions
from penstock.protocol.messages.forward import ForwardRequest, ForwardResponse


async def handle(request: ForwardRequest, context: RequestContext) -> ForwardResponse:
    broker = context.broker
    controller = broker.acting_controller()
    key, version = request.inner_key, request.inner_version
    if key not in CONTROLLER_APIS or version not in supported_versions(key):
        raise InvalidRequest(f"version {version} of API {key} is not passed on")
    inner = request_class(key).decode(bytearray(request.body), version)
    assert broker.dispatcher is not None  # A member of a cluster has one.
    answer = await broker.dispatcher.handle(
        inner, version, client_id=request.client_id, session=session_of(request)
    )
    image = controller.image
    return ForwardResponse(
        error_message=None,
        controller_epoch=image.controller_epoch,
        seq=image.seq,
        body=answer.encode(version) if answer is not None else b"",
    )
