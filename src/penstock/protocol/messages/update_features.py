"""UpdateFeatures: raise or lower the level of cluster features (KIP-584)."""

from penstock.protocol.apis import ApiKey, Request, Response
from penstock.protocol.schema import Struct, array, boolean, int8, int16, int32, string


class FeatureUpdateKey(Struct):
    """A feature and the level it shall have."""

    feature: str = string("0+")
    max_version_level: int = int16("0+")
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


class UpdateFeaturesRequest(Request, api=ApiKey.UPDATE_FEATURES):
    """Features to change, or only to check."""

    timeout_ms: int = int32("0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey, "0+")
    validate_only: bool = boolean("1+")


class UpdatableFeatureResult(Struct):
    """Whether one feature was changed."""

    feature: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)


class UpdateFeaturesResponse(Response, api=ApiKey.UPDATE_FEATURES):
    """One result per feature until version 1, one for all after."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable=True)
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult, "0-1", ignorable=True)
