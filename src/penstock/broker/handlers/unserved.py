"""Share and streams groups, which this broker does not have: whoever asks is told so.

These APIs are not announced in ApiVersions, and a client that looks there never sends them. To one
that sends them all the same a closed connection would look like a broker that is gone, and it
would come again for ever; UNSUPPORTED_VERSION it understands.
"""

from typing import Any

from penstock.broker.context import RequestContext
from penstock.broker.error_answers import fail
from penstock.errors import ProtocolError, UnsupportedVersion
from penstock.protocol.apis import ApiKey, Request, Response, response_class

_OF_STREAMS = frozenset({ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE})


def handle(request: Request, context: RequestContext) -> Response:
    kind = "streams" if request.api_key in _OF_STREAMS else "share"
    raise UnsupportedVersion(f"This broker does not support {kind} groups.")


def error_response(request: Any, error: ProtocolError) -> Response:
    """The error for the whole request, or where there is no place for it, for each group."""
    response: Any = response_class(request.api_key)()
    refused = [response]
    if not hasattr(response, "error_code"):
        described = type(response).fields["groups"].of
        names = _group_ids(request)
        refused = response.groups = [described(group_id=name) for name in names]
    for part in refused:
        fail(part, error)
    made: Response = response
    return made


def _group_ids(request: Any) -> list[str]:
    if hasattr(request, "group_ids"):
        return list(request.group_ids)
    return [group.group_id for group in request.groups]
