"""Features: those whose behaviour the broker has, always at their highest level."""

from typing import Any

import pytest

from penstock.errors import ErrorCode
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

ELR = "eligible.leader.replicas.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3


def update(served: Any, name: str, level: int, kind: int = UPGRADE, version: int = 2) -> Any:
    key = FeatureUpdateKey(feature=name, max_version_level=level)
    if version:
        key.upgrade_type = kind
    return served.ask(UpdateFeaturesRequest(feature_updates=[key]), version)


def test_the_features_are_told_with_their_levels(served: Any) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = served.ask(request, 4)
    levels = {f.name: f.max_version_level for f in answer.finalized_features}
    assert levels == {ELR: 1, "group.version": 1, "transaction.version": 2}
    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    assert supported == {name: (0, level) for name, level in levels.items()}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_to_ask_for_the_level_that_is_on_succeeds(served: Any, version: int) -> None:
    answer = update(served, ELR, 1, version=version)
    assert (answer.error_code, answer.error_message) == (0, None)
    named = [(result.feature, result.error_code) for result in answer.results]
    assert named == ([] if version == 2 else [(ELR, 0)])


@pytest.mark.parametrize(
    ("name", "level", "kind", "reason"),
    [
        ("metadata.version", 7, UPGRADE, "does not support this feature"),
        (ELR, 2, UPGRADE, "only supports versions 0-1"),
        (ELR, -1, UPGRADE, "cannot be less than 0"),
        (ELR, 0, UPGRADE, "without setting the upgrade type"),
        (ELR, 0, SAFE, "always at version 1 here"),
        ("transaction.version", 1, UNSAFE, "always at version 2 here"),
        (ELR, 1, 9, "does not support the given upgrade type"),
    ],
)
def test_another_level_is_refused_for_all(
    served: Any, name: str, level: int, kind: int, reason: str
) -> None:
    answer = update(served, name, level, kind)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message.startswith("The update failed for all features since the following")
    assert f"Invalid update version {level} for feature {name}. " in answer.error_message
    assert reason in answer.error_message
