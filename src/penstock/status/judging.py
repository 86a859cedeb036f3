"""What is wrong with a cluster, in sentences; the worst first."""

from collections.abc import Sequence

from penstock.client.values import TopicPartition
from penstock.status.values import ClusterState, DirectoryState, PartitionStatus

_NAMES_SHOWN = 5


def problems(state: ClusterState) -> list[str]:
    """What is wrong, the worst first; empty: nothing is."""
    return [
        *_about_partitions(state.partitions),
        *_about_brokers(state),
    ]


def warnings(state: ClusterState) -> list[str]:
    """What is not wrong yet, and will be if nobody acts."""
    return [
        f"broker {broker.node.id}: the disk under {one.path} is nearly full: {_left(one)}"
        for broker in state.brokers
        for one in broker.directories
        if one.is_nearly_full
    ]


def bytes_text(size: int) -> str:
    """1.5 MB, and so on."""
    value, units = float(size), ["B", "KB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"


def _about_partitions(partitions: Sequence[PartitionStatus]) -> list[str]:
    offline = [p.at for p in partitions if p.leader is None]
    under_min = [p.at for p in partitions if p.is_under_min_isr and p.leader is not None]
    at_min = [p.at for p in partitions if p.is_at_min_isr and p.leader is not None]
    counted = {*offline, *under_min, *at_min}
    under = [p.at for p in partitions if p.is_under_replicated and p.at not in counted]
    told = [
        (offline, "no leader, so nobody can read or write them"),
        (under_min, "fewer replicas in sync than min.insync.replicas: acks=all is refused"),
        (at_min, "just min.insync.replicas in sync: one more loss and acks=all is refused"),
        (under, "replicas that are not in sync"),
    ]
    return [f"{_counted(ats)} with {what}: {_named(ats)}" for ats, what in told if ats]


def _about_brokers(state: ClusterState) -> list[str]:
    known = {broker.node.id for broker in state.brokers}
    held = state.replicas()
    told = []
    for broker_id in sorted(set(held) - known):
        count = f"{held[broker_id]} partition{_s(held[broker_id])}"
        told.append(f"broker {broker_id} is gone; {count} had a replica there")
    for broker in state.brokers:
        if broker.is_fenced:
            told.append(f"broker {broker.node.id} is fenced: it is registered but may not lead")
        told += [f"broker {broker.node.id}: {failure}" for failure in broker.failures]
        told += [
            f"broker {broker.node.id}: the disk under {one.path} is full, so records are refused "
            f"there: {_left(one)}"
            for one in broker.directories
            if one.is_full
        ]
    if state.controller_id is None:
        told.append("there is no controller, so nobody elects leaders or creates topics")
    return told


def _left(directory: DirectoryState) -> str:
    return (
        f"{bytes_text(directory.usable_bytes)} ({directory.usable_bytes} bytes) of "
        f"{bytes_text(directory.total_bytes)} are left for records"
    )


def _named(partitions: Sequence[TopicPartition]) -> str:
    shown = ", ".join(str(at) for at in partitions[:_NAMES_SHOWN])
    more = len(partitions) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _counted(partitions: Sequence[TopicPartition]) -> str:
    return f"{len(partitions)} partition{_s(len(partitions))}"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
