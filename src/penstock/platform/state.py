"""What a tree tells of itself: the content of its state file, for `penstock status` and `down`."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process for certain: its number is given again one day, not so with the moment it began."""

    pid: int
    born: int  # In the kernel's ticks since the machine started; 0 where that cannot be told.


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorState:
    """One address, as it was when the tree last asked."""

    service: str
    address: str
    is_ready: bool = False
    problem: str | None = None  # None: nothing is known to be wrong.


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """One process of the tree."""

    name: str
    identity: ProcessIdentity | None  # None: it has ended and waits for its next start.
    started_ms: int
    restarts: int
    log: str
    last_end: str | None  # Why it had to be started again.
    doors: tuple[DoorState, ...]

    @property
    def is_ready(self) -> bool:
        """Whether everything in it answers."""
        return self.identity is not None and all(door.is_ready for door in self.doors)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeState:
    """The tree: who supervises it, and what is in it."""

    supervisor: ProcessIdentity
    started_ms: int
    is_up: bool  # Everything has answered at least once.
    processes: tuple[ProcessState, ...]

    @property
    def identities(self) -> tuple[ProcessIdentity, ...]:
        """The processes below the supervisor."""
        found = (process.identity for process in self.processes)
        return tuple(identity for identity in found if identity is not None)


def to_json(state: TreeState) -> str:
    return json.dumps(asdict(state), indent=1)


def from_json(text: str) -> TreeState:
    """ValueError, KeyError or TypeError for what is no state."""
    found = json.loads(text)
    return TreeState(
        supervisor=ProcessIdentity(**found["supervisor"]),
        started_ms=found["started_ms"],
        is_up=found["is_up"],
        processes=tuple(_process(one) for one in found["processes"]),
    )


def _process(found: dict[str, Any]) -> ProcessState:
    identity = found["identity"]
    doors: Sequence[dict[str, Any]] = found["doors"]
    return ProcessState(
        **{
            **found,
            "identity": None if identity is None else ProcessIdentity(**identity),
            "doors": tuple(DoorState(**door) for door in doors),
        }
    )
