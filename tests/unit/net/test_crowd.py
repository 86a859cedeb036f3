"""How many may be in a broker: over all listeners, at one, from one address."""

from dataclasses import dataclass, field, replace

from penstock.net.crowd import Crowd, CrowdLimits

MANY = 1000


@dataclass
class Hall:
    """A listener that only keeps when each of its connections was last heard."""

    name: str
    crowd: Crowd
    heard_s: list[float] = field(default_factory=list)
    looked: int = 0

    def __post_init__(self) -> None:
        self.crowd.add_door(self)

    def look_again(self) -> None:
        self.looked += 1

    def longest_silent_s(self) -> float | None:
        return min(self.heard_s, default=None)

    def close_longest_silent(self) -> None:
        self.heard_s.remove(min(self.heard_s))
        self.crowd.leave(self.name, "ip")

    def take(self, heard_s: float, ip: str = "ip") -> None:
        self.heard_s.append(heard_s)
        self.crowd.enter(self.name, ip)


def test_the_limit_of_the_broker_counts_all_listeners() -> None:
    crowd = Crowd(CrowdLimits(most=3, most_per_ip=MANY))
    for listener in ("A", "B", "A"):
        assert crowd.has_room(listener)
        crowd.enter(listener, "ip")
    assert not crowd.has_room("A")
    assert not crowd.has_room("B")
    crowd.leave("A", "ip")
    assert crowd.has_room("B")


def test_a_listener_has_a_limit_of_its_own() -> None:
    crowd = Crowd(CrowdLimits(most=MANY, most_by_listener={"A": 1}, most_per_ip=MANY))
    crowd.enter("A", "ip")
    assert not crowd.has_room("A")
    assert crowd.has_room("B")


def test_an_address_is_counted_over_all_listeners_and_spellings() -> None:
    crowd = Crowd(CrowdLimits(most=MANY, most_per_ip=2, most_by_ip={"10.0.0.9": 1}))
    crowd.enter("A", "10.0.0.1")
    assert crowd.most_from("10.0.0.1") is None
    crowd.enter("B", "::ffff:10.0.0.1")
    assert crowd.most_from("10.0.0.1") == 2
    assert crowd.most_from("10.0.0.2") is None
    crowd.enter("A", "10.0.0.9")
    assert crowd.most_from("10.0.0.9") == 1
    crowd.leave("A", "10.0.0.1")
    assert crowd.most_from("10.0.0.1") is None


def test_brokers_come_in_all_the_same_and_the_longest_silent_client_leaves() -> None:
    crowd = Crowd(CrowdLimits(most=3, most_per_ip=MANY, protected="BROKERS"))
    first, second, brokers = (Hall(name, crowd) for name in ("A", "B", "BROKERS"))
    first.take(5.0)
    second.take(3.0)
    brokers.take(1.0)
    assert not crowd.has_room("A")
    assert crowd.has_room("BROKERS")
    brokers.take(6.0)
    assert (first.heard_s, second.heard_s, brokers.heard_s) == ([5.0], [], [1.0, 6.0])
    assert crowd.total == 3


def test_brokers_alone_close_nobody() -> None:
    crowd = Crowd(CrowdLimits(most=1, most_per_ip=MANY, protected="BROKERS"))
    brokers = Hall("BROKERS", crowd)
    brokers.take(1.0)
    brokers.take(2.0)
    assert brokers.heard_s == [1.0, 2.0]


def test_every_door_looks_again_when_somebody_leaves_or_limits_change() -> None:
    limits = CrowdLimits(most=1, most_per_ip=MANY)
    crowd = Crowd(limits)
    doors = [Hall(name, crowd) for name in ("A", "B")]
    crowd.enter("A", "ip")
    crowd.leave("A", "ip")
    assert [door.looked for door in doors] == [1, 1]
    crowd.obey(limits)
    assert [door.looked for door in doors] == [1, 1]
    crowd.obey(replace(limits, most=2))
    assert [door.looked for door in doors] == [2, 2]
