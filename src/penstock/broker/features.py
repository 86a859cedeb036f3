"""The cluster features of which this broker has the behaviour, and at which level (KIP-584).

Every level below is part of the code and always on, so a level cannot be changed. Features of
KRaft's own (metadata.version, kraft.version) mean nothing here, and those of share and streams
groups would promise what is not served.
"""

from collections.abc import Mapping
from typing import Final

from penstock.errors import InvalidUpdateVersion

# By name: the highest level, which is also the one that is switched on.
FEATURES: Final[Mapping[str, int]] = {
    "eligible.leader.replicas.version": 1,  # KIP-966
    "group.version": 1,  # KIP-848
    "transaction.version": 2,  # KIP-890
}
FEATURES_EPOCH: Final = 0

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def check_update(name: str, level: int, upgrade_type: int) -> None:
    """Raise what is wrong with the wish; the only level to be had is the one that is on."""
    if reason := _fault(name, level, upgrade_type):
        raise InvalidUpdateVersion(f"Invalid update version {level} for feature {name}. {reason}")


def _fault(name: str, level: int, upgrade_type: int) -> str | None:
    current = FEATURES.get(name)
    if current is None:
        return "This cluster does not support this feature."
    if upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if level > current:
        return f"This cluster only supports versions 0-{current}"
    if level < current and upgrade_type == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if level < current:
        return f"It is always at version {current} here and cannot be switched off."
    return None
