"""ApiVersions: what this broker speaks, straight from the dispatch table."""

import re

from penstock.broker.context import RequestContext
from penstock.broker.dispatch import api_versions_response, served_versions
from penstock.broker.features import FEATURES, FEATURES_EPOCH
from penstock.errors import ErrorCode
from penstock.net.session import ClientSoftware
from penstock.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_VERSION_WITH_NAMES = 3
_FIRST_VERSION_WITH_LOWEST_0 = 4  # Clients of version 3 take a feature that begins with 0 for bad.


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    if context.version >= _FIRST_VERSION_WITH_NAMES:
        if not _is_named(request):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        context.session.software = ClientSoftware(
            request.client_software_name, request.client_software_version
        )
    response = api_versions_response(served_versions())
    _add_features(response, context.version)
    return response


def _add_features(response: ApiVersionsResponse, version: int) -> None:
    """Clients begin with transaction version 2 when they see it finalized (KIP-890)."""
    if version >= _FIRST_VERSION_WITH_LOWEST_0:
        response.supported_features = [
            SupportedFeatureKey(name=name, min_version=0, max_version=level)
            for name, level in FEATURES.items()
        ]
    response.finalized_features_epoch = FEATURES_EPOCH
    response.finalized_features = [
        FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
        for name, level in FEATURES.items()
    ]


def _is_named(request: ApiVersionsRequest) -> bool:
    """Client names end up in metrics and logs, so only plain ones are let in (KIP-511)."""
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE_NAME.fullmatch(name) for name in names)
