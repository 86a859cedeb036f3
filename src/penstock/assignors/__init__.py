"""Who reads which partition: pure functions from subscriptions to assignments.

The group coordinator uses `uniform` and `range` for groups that it assigns itself (KIP-848); the
others are what members of classic groups agree on among themselves. Topics are whatever the
caller names them by: names on the client's side, ids on the coordinator's. Racks play no part,
as they play none in the coordinator's assignors of Apache Kafka.
"""

from penstock.assignors.ranges import assign_ranges
from penstock.assignors.round_robin import assign_round_robin
from penstock.assignors.sticky import assign_sticky, still_held_by_others
from penstock.assignors.subscriber import Assignment, Subscriber
from penstock.assignors.uniform import assign_uniform

__all__ = [
    "Assignment",
    "Subscriber",
    "assign_ranges",
    "assign_round_robin",
    "assign_sticky",
    "assign_uniform",
    "still_held_by_others",
]
