"""Moves between the log directories of one broker, which a reassignment file may ask for too."""

import time
from collections.abc import Mapping, Sequence

from penstock.cli.sentences import sentence
from penstock.client.admin import Admin
from penstock.client.errors import ClientError
from penstock.client.operations.reassignments import Replica
from penstock.client.operations.replica_log_dirs import ReplicaLogDirs
from penstock.client.values import TopicPartition
from penstock.errors import CommandError, ReplicaNotAvailable

_AGAIN_S = 0.1


def move(admin: Admin, wanted: Mapping[Replica, str], *, timeout_ms: int) -> None:
    """Begin the moves; a replica that is only now coming to its broker is waited for."""
    pending = dict(wanted)
    give_up_s = time.monotonic() + timeout_ms / 1000
    while True:
        for replica, error in admin.alter_replica_log_dirs(pending).items():
            if error is None:
                path = pending.pop(replica)
                print(
                    f"Successfully started moving log directory to {path} for replica "
                    f"{replica.topic}-{replica.partition} with broker {replica.broker_id} "
                )
            elif not isinstance(error, ReplicaNotAvailable):
                raise CommandError(f"Failed to alter dir for {replica}: {sentence(error)}")
        if not pending:
            return
        if time.monotonic() > give_up_s:
            plural = "" if len(pending) == 1 else "s"
            listed = ",".join(str(replica) for replica in sorted(pending))
            raise CommandError(
                f"Timed out before log directory move{plural} could be started for: {listed}"
            )
        time.sleep(_AGAIN_S)


def paths(admin: Admin, assignment: Mapping[TopicPartition, Sequence[int]]) -> dict[Replica, str]:
    """Where the replicas are, of brokers that answer."""
    replicas = {Replica(*at, broker) for at, brokers in assignment.items() for broker in brokers}
    found: dict[Replica, str] = {}
    for broker_id in sorted({replica.broker_id for replica in replicas}):
        try:
            its = admin.describe_replica_log_dirs(r for r in replicas if r.broker_id == broker_id)
        except ClientError:
            continue  # A rollback then leaves the choice of the directory to that broker.
        found.update({r: place.current for r, place in its.items() if place.current is not None})
    return found


def show(admin: Admin, wanted: Mapping[Replica, str]) -> bool:
    """Print how far the moves are; whether any is under way."""
    places = admin.describe_replica_log_dirs(sorted(wanted))
    for replica, place in places.items():
        print(status_line(replica, wanted[replica], place))
    return any(not _is_over(place) for place in places.values())


def stay(admin: Admin, wanted: Mapping[Replica, str], *, timeout_ms: int) -> None:
    """Have replicas that are being moved to these directories stay where they are."""
    places = admin.describe_replica_log_dirs(wanted)
    moving = {
        replica: place.current
        for replica, place in places.items()
        if place.current is not None and place.future == wanted[replica]
    }
    if moving:
        move(admin, moving, timeout_ms=timeout_ms)
    else:
        print("None of the specified partition moves are active.")


def status_line(replica: Replica, target: str, place: ReplicaLogDirs) -> str:
    """What --verify prints of one replica."""
    partition = f"Partition {replica.topic}-{replica.partition}"
    broker = replica.broker_id
    if place.current is None and place.future is None:
        return f"{partition} cannot be found in any live log directory on broker {broker}."
    if place.current is None:
        return (
            f"{partition} is not found in any live log dir on broker {broker}. There is likely an "
            "offline log directory on the broker."
        )
    if place.future is None and place.current == target:
        return f"Reassignment of replica {replica} completed successfully."
    if place.future is None:
        return (
            f"{partition} on broker {broker} is not being moved from log dir {place.current} "
            f"to {target}."
        )
    if place.future == target:
        return f"Reassignment of replica {replica} is still in progress."
    return (
        f"{partition} on broker {broker} is being moved to log dir {place.future} "
        f"instead of {target}."
    )


def _is_over(place: ReplicaLogDirs) -> bool:
    return place.current is not None and place.future is None
