"""What a fault is: a name, a sentence, the cluster it needs, and one blow with its healing."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.faults.deployment import Deployment, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster under load, and the topic that the clients use."""

    deployment: Deployment
    topic: str
    partitions: int
    chance: random.Random
    notes: list[str] = field(default_factory=list)  # What was done when, for the report.

    def note(self, text: str) -> None:
        self.notes.append(f"{time.monotonic_ns() / 1e9:.3f} {text}")

    def hold(self, seconds: float) -> None:
        """Let the fault last, or the cluster run; time is what this is about."""
        time.sleep(seconds)  # The length of a fault is part of it.


PLAIN = Plan()


def always_there() -> str | None:
    """For faults that need nothing but processes."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    name: str
    text: str
    strike: Callable[[Target], None]  # One blow; it may leave the healing to the runner.
    plan: Plan = PLAIN
    means: Callable[[], str | None] = always_there  # The reason why this machine cannot do it.
    is_lossy: bool = False  # Breaks more than replication promises to survive.
    has_stale_leaders: bool = False  # One that was replaced may still answer for a while.
    has_outages: bool = True  # Some broker is down or out of reach for a while.
    has_rot: bool = False  # Damages stored bytes of one replica on purpose, which then differ.
    recovery_s: float = 3.0  # How long the cluster is left alone between two blows.
