"""Who may join the in-sync set, put to the test: a joiner sticks in its first write.

Between a follower's joining and its next record lie milliseconds, in which a mistake about who may
join costs what was acknowledged. Here they are stretched: the joiner's disk (by the shim) does not
take the next record, and meanwhile those who have it die.
"""

from collections.abc import Callable

from tests.faults.deployment import BrokerNode
from tests.faults.injectors.damage import empty
from tests.faults.injectors.fault import Target
from tests.faults.injectors.shim import shim_of
from tests.support.waiting import eventually

NEVER_MS = 60_000  # Longer than anybody waits for the write.
SESSION_PART_S = 1.7  # A broker may hold still for so long and keep its session of 3 s.


def seen_by(target: Target, node: BrokerNode, partition: int) -> frozenset[int]:
    """The in-sync set by the word of this broker; OSError when it does not answer."""
    return frozenset(node.view([target.topic]).partitions[target.topic, partition].isr)


def came_true(is_true: Callable[[], bool], *, within_s: float, every_s: float = 0.01) -> bool:
    """Whether it came to that; where it does not, the blow has missed."""
    try:
        return eventually(is_true, timeout_s=within_s, every_s=every_s, what="a chance to strike")
    except AssertionError:
        return False


def stick(target: Target, node: BrokerNode, partition: int) -> None:
    """From now on nothing can be written to the node's replica of this partition."""
    orders = shim_of(target, node).orders
    orders.directory = f"{node.data}/{target.topic}-{partition}/".encode()
    orders.write_delay_ms = NEVER_MS


def kill(target: Target, node: BrokerNode) -> None:
    target.note(f"kill -9 of broker {node.broker_id}")
    node.kill()


def return_alone(target: Target, node: BrokerNode) -> None:
    """Who joined too early is the only one there, for long enough to be made the leader."""
    shim_of(target, node).clear()
    node.launch()
    target.note(f"broker {node.broker_id} starts alone, on a good disk")
    target.hold(target.chance.uniform(3, 5))
    others = [other for other in target.deployment.brokers.values() if not other.is_running]
    target.deployment.start_missing()
    node.wait_until_ready(timeout_s=90)
    target.note(f"brokers {[other.broker_id for other in others]} are back")


def join_new_leader(target: Target) -> None:
    """A leader is followed by an heir that does not know yet how much of its log is committed.

    First the joiner holds still until it is out of sync. Just before, the heir holds still too, so
    that it has the records that are acknowledged then, and not the news. The leader dies. Only the
    start of the heir's epoch tells that the joiner, which is where the heir believes the committed
    records to end, has to fetch more before it may join.
    """
    partition = target.chance.randrange(target.partitions)
    leader = target.deployment.leader_of(target.topic, partition)
    others = [node for node in target.deployment.running() if node is not leader]
    heir, joiner = target.chance.sample(others, 2)
    target.note(f"SIGSTOP to broker {joiner.broker_id}, then to broker {heir.broker_id}")
    joiner.pause()
    target.hold(SESSION_PART_S)
    heir.pause()
    is_out = came_true(
        lambda: joiner.broker_id not in seen_by(target, leader, partition), within_s=SESSION_PART_S
    )
    target.hold(0.1)  # The records that are committed now are acknowledged.
    kill(target, leader)
    heir.resume()
    joiner.resume()
    target.hold(0.2)  # What it was sent before counts for little.
    stick(target, joiner, partition)
    has_joined = is_out and came_true(
        lambda: {heir.broker_id, joiner.broker_id} <= seen_by(target, heir, partition),
        within_s=6,
    )
    target.note(f"broker {joiner.broker_id} {'has' if has_joined else 'has not'} joined")
    kill(target, heir)
    kill(target, joiner)
    return_alone(target, joiner)


def join_unseen(target: Target) -> None:
    """A follower comes back without its disk, to a leader that remembers where it once was.

    The third broker is down, so that nothing more is committed, and what the leader remembers is
    still enough. Only the fence tells that it was another life of the follower.
    """
    partition = target.chance.randrange(target.partitions)
    leader = target.deployment.leader_of(target.topic, partition)
    others = [node for node in target.deployment.running() if node is not leader]
    third, joiner = target.chance.sample(others, 2)
    both = {leader.broker_id, joiner.broker_id}
    kill(target, third)
    came_true(lambda: seen_by(target, leader, partition) == both, within_s=5)
    target.hold(target.chance.uniform(0.2, 1))
    kill(target, joiner)
    empty(joiner)
    stick(target, joiner, partition)
    joiner.launch()
    target.note(f"broker {joiner.broker_id} starts with nothing")
    has_joined = came_true(
        lambda: joiner.broker_id not in seen_by(target, leader, partition), within_s=2
    ) and came_true(lambda: joiner.broker_id in seen_by(target, leader, partition), within_s=6)
    target.note(f"broker {joiner.broker_id} {'has' if has_joined else 'has not'} joined")
    kill(target, leader)
    kill(target, joiner)
    return_alone(target, joiner)
