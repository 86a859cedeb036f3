"""What a shard needs from outside, as ports: a journal, a clock, names, settings, the cluster.

The machines in this package know no event loop, no files and no real time. The coordinator plugs
in the real things; tests plug in lists and a clock they turn by hand.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.coordination.answers import LateAnswers
from penstock.coordination.machine import Clock, Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSurroundings:
    """Everything a shard may ask or tell."""

    journal: Journal
    clock: Clock
    new_id: Callable[[], str]  # A fresh random UUID in its usual text form.
    config: Callable[[], BrokerConfig]  # As it holds now.
    image: Callable[[], ClusterImage]  # As it is now.
    report: Callable[[str], None]  # A line for the broker's log.
    answers: LateAnswers = field(default_factory=LateAnswers)  # To requests that had to wait.


VisibleTopics = Callable[[Iterable[str]], Iterable[str]]


def _all_of_them(topics: Iterable[str]) -> Iterable[str]:
    return topics


class Caller(NamedTuple):
    """Who sent a request, and in which version of it."""

    version: int
    client_id: str
    client_host: str
    visible: VisibleTopics = _all_of_them  # Those of some topics that the sender may know of.


class MemberClaim(NamedTuple):
    """The membership that a committer says it has; -1 and "" claim none."""

    member_id: str = ""
    epoch: int = -1  # The generation in the classic protocol, the member epoch in the new one.
    instance_id: str | None = None
