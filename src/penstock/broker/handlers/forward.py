"""Forward: a client's request that another broker passed on, because this one is the controller."""

from penstock.broker.context import RequestContext
from penstock.broker.dispatch import CONTROLLER_APIS, Dispatcher
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
    answer = await Dispatcher(broker, listener=request.listener).handle(
        inner,
        version,
        client_id=request.client_id,
        client_address=request.client_host,
        principal=request.principal,
    )
    image = controller.image
    return ForwardResponse(
        error_message=None,
        controller_epoch=image.controller_epoch,
        seq=image.seq,
        body=answer.encode(version) if answer is not None else b"",
    )
