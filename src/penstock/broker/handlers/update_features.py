"""UpdateFeatures: every feature is always at its highest level; to ask for just that succeeds."""

from penstock.broker.context import RequestContext
from penstock.broker.features import SAFE_DOWNGRADE, UPGRADE, check_update
from penstock.errors import InvalidUpdateVersion, ProtocolError
from penstock.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_FIRST_VERSION_WITH_TYPES = 1
_FIRST_VERSION_WITHOUT_RESULTS = 2


def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    updates = request.feature_updates
    for update in updates:
        try:
            check_update(
                update.feature, update.max_version_level, _upgrade_type(update, context.version)
            )
        except ProtocolError as error:
            raise InvalidUpdateVersion(
                "The update failed for all features since the following feature had an error: "
                f"{error}"
            ) from None
    if context.version >= _FIRST_VERSION_WITHOUT_RESULTS:
        return UpdateFeaturesResponse(error_message=None)
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=update.feature, error_message=None) for update in updates
        ],
    )


def _upgrade_type(update: FeatureUpdateKey, version: int) -> int:
    if version >= _FIRST_VERSION_WITH_TYPES:
        return update.upgrade_type
    return SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE
