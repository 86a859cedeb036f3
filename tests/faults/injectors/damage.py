"""Torn tails and bit rot: files of a broker damaged while it is down."""

import random
from pathlib import Path

from tests.faults.deployment import BrokerNode
from tests.faults.injectors.fault import Target
from tests.faults.injectors.signals import some_leader

TAIL_BYTES_MAX = 4096


def truncate(path: Path, chance: random.Random) -> str:
    size = path.stat().st_size
    cut = min(size, chance.randint(1, TAIL_BYTES_MAX))
    with path.open("r+b") as file:
        file.truncate(size - cut)
    return f"{path.name} lost its last {cut} bytes"


def overwrite(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    length = min(len(data), chance.randint(1, TAIL_BYTES_MAX))
    data[len(data) - length :] = chance.randbytes(length)
    path.write_bytes(data)
    return f"{path.name} has noise in its last {length} bytes"


def zero(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    length = min(len(data), chance.randint(1, TAIL_BYTES_MAX))
    data[len(data) - length :] = bytes(length)
    path.write_bytes(data)
    return f"{path.name} has zeros in its last {length} bytes"


def repeat(path: Path, chance: random.Random) -> str:
    data = path.read_bytes()
    length = min(len(data), chance.randint(1, TAIL_BYTES_MAX))
    with path.open("ab") as file:
        file.write(data[len(data) - length :])
    return f"{path.name} has its last {length} bytes twice"


def remove(path: Path, _chance: random.Random) -> str:
    path.unlink()
    return f"{path.name} is gone"


LOG_DAMAGE = (truncate, overwrite, zero, repeat)
SIDE_DAMAGE = (truncate, overwrite, zero, remove)
SIDES = ("*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint")
CHECKPOINTS = ("replication-offset-checkpoint", "recovery-point-offset-checkpoint")


def tear_tails(target: Target) -> None:
    """One broker crashes, and the ends of its newest segments are not what was written.

    The machine did not start anew, so the broker believes in its files until it has read them. As
    long as the others live, nothing may be lost and the damage must heal by itself.
    """
    chance, node = target.chance, some_leader(target)
    target.note(f"kill -9 of broker {node.broker_id}")
    node.kill()
    for partition in range(target.partitions):
        directory = node.data / f"{target.topic}-{partition}"
        segments = sorted(directory.glob("*.log"))
        if segments and segments[-1].stat().st_size:
            target.note(f"{directory.name}/{chance.choice(LOG_DAMAGE)(segments[-1], chance)}")
        for pattern in SIDES:
            found = [path for path in directory.glob(pattern) if path.stat().st_size]
            if found and chance.random() < 0.4:
                path = chance.choice(found)
                target.note(f"{directory.name}/{chance.choice(SIDE_DAMAGE)(path, chance)}")
    for name in CHECKPOINTS:
        if chance.random() < 0.3 and (node.data / name).exists():
            target.note(remove(node.data / name, chance))
    node.launch()
    node.wait_until_ready(timeout_s=90)
    target.note(f"broker {node.broker_id} is back")


def rot(target: Target) -> None:
    """A byte of an old record changes on one replica. Kafka does not look for that, and neither do
    we; what must hold is that the damage stays there and is never taken for a record."""
    chance, node = target.chance, some_leader(target)
    target.note(f"kill -9 of broker {node.broker_id}")
    node.kill()
    directory = node.data / f"{target.topic}-{chance.randrange(target.partitions)}"
    segments = sorted(path for path in directory.glob("*.log") if path.stat().st_size > 200)
    if segments:
        data = bytearray(segments[0].read_bytes())
        at = chance.randrange(61, min(len(data), 4096))
        data[at] ^= 1 << chance.randrange(8)
        segments[0].write_bytes(data)
        target.note(f"a bit of {directory.name}/{segments[0].name} at {at} has turned")
    node.launch()
    node.wait_until_ready(timeout_s=90)
    target.note(f"broker {node.broker_id} is back")


def empty(node: BrokerNode) -> None:
    """Take everything from a broker that is down, but for its name."""
    for path in sorted(node.data.glob("*")):
        if path.is_dir():
            for inner in path.iterdir():
                inner.unlink()
            path.rmdir()
        elif path.name != "meta.properties":
            path.unlink()


def lose_disk(target: Target) -> None:
    """A broker comes back with an empty log directory."""
    node = some_leader(target)
    target.note(f"kill -9 of broker {node.broker_id}; its partitions are gone")
    node.kill()
    empty(node)
    node.launch()
    node.wait_until_ready(timeout_s=90)
    target.note(f"broker {node.broker_id} is back")
