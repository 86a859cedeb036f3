"""The kinds of groups besides the classic one, each loaded when the first shard is made.

A broker that coordinates nothing yet, as when it has just been set up, starts without them.
"""

from collections.abc import Callable
from typing import Final

from penstock.groups.shard import Family, GroupShard


def _consumer_groups(shard: GroupShard) -> Family:
    from penstock.groups.consumer.groups import ConsumerGroups

    return ConsumerGroups(shard)


KINDS: Final[tuple[Callable[[GroupShard], Family], ...]] = (_consumer_groups,)
