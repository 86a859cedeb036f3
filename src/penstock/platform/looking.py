"""How a tree is, seen from another terminal: its state file, the process table, and its doors."""

from dataclasses import dataclass

from penstock.platform.child import is_alive, memory_bytes
from penstock.platform.directory import PlatformDirectory
from penstock.platform.state import DoorState, ProcessIdentity, ProcessState, TreeState


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenProcess:
    """A process with what it takes now."""

    state: ProcessState
    memory_bytes: int | None  # None: it does not run.


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenTree:
    """A tree that runs, or what a killed supervisor has left of one."""

    state: TreeState
    is_supervised: bool
    memory_bytes: int | None  # Of the supervisor alone.
    processes: tuple[SeenProcess, ...]

    @property
    def total_bytes(self) -> int:
        """The memory of all processes together."""
        sizes = (self.memory_bytes, *(one.memory_bytes for one in self.processes))
        return sum(size for size in sizes if size is not None)


def look(directory: PlatformDirectory) -> SeenTree | None:
    """The tree of a directory; None if nothing runs there."""
    state = directory.state() if directory.is_held() else None
    if state is None:
        return None
    return SeenTree(
        state=state,
        is_supervised=is_alive(state.supervisor),
        memory_bytes=_memory(state.supervisor),
        processes=tuple(
            SeenProcess(state=one, memory_bytes=_memory(one.identity)) for one in state.processes
        ),
    )


def problems(seen: SeenTree) -> list[str]:
    """What is not as it should be, a sentence each."""
    found = [] if seen.is_supervised else ["the supervisor was killed; what it left is stopping"]
    for one in seen.processes:
        if one.memory_bytes is None:
            found.append(f"{one.state.name} is down: it {one.state.last_end or 'has ended'}")
            continue
        found += [trouble for door in one.state.doors if (trouble := _trouble(door))]
    return found


def word_of(process: SeenProcess, door: DoorState) -> str:
    """How a service is, in a word."""
    if process.memory_bytes is None:
        return "down"
    if door.problem is not None:
        return "failing"
    return "up" if door.is_ready else "starting"


def _trouble(door: DoorState) -> str | None:
    if door.problem is not None:
        return f"{door.service} at {door.address} is failing: {door.problem}"
    return None if door.is_ready else f"{door.service} does not answer at {door.address}"


def _memory(identity: ProcessIdentity | None) -> int | None:
    if identity is None or not is_alive(identity):
        return None
    return memory_bytes(identity.pid)
