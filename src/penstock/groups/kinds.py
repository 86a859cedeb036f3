"""The kinds of groups besides the classic one, each loaded when the first shard is made.

A broker that coordinates nothing yet, as when it has just been set up, starts without them.
"""

from collections.abc import Callable
from typing import Final

from penstock.groups.shard import Family, Shard


def _consumer_groups(shard: Shard) -> Family:
    from penstock.groups.consumer_groups import ConsumerGroups

    return ConsumerGroups(shard)


KINDS: Final[tuple[Callable[[Shard], Family], ...]] = (_consumer_groups,)
