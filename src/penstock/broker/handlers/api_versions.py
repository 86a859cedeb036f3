"""ApiVersions: what this broker speaks, straight from the dispatch table."""

import re

from penstock.broker.context import RequestContext
from penstock.broker.dispatch import api_versions_response, served_versions
from penstock.errors import ErrorCode
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_VERSION_WITH_NAMES = 3


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    if context.version >= _FIRST_VERSION_WITH_NAMES and not _is_named(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return api_versions_response(served_versions())


def _is_named(request: ApiVersionsRequest) -> bool:
    """Client names end up in metrics and logs, so only plain ones are let in (KIP-511)."""
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE_NAME.fullmatch(name) for name in names)
