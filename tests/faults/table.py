"""Every fault by name."""

from collections.abc import Callable

from tests.faults.deployment import Plan
from tests.faults.injectors import damage, disks, joining, network, shim, signals
from tests.faults.injectors.fault import Fault, Target

ENSEMBLE = Plan(zookeepers=3)
NETWORK = Plan(has_network=True)
SMALL = Plan(disk="small")
LOOP = Plan(disk="loop")
SYNCED_LOOP = Plan(disk="loop", settings=(("log.flush.interval.messages", "1"),))
SHIM = Plan(has_shim=True)
SLOW_LINKS = Plan(has_slow_links=True)
# Small segments, so that a damaged broker has closed ones too.
SEGMENTS = Plan(settings=(("internal.segment.bytes", "65536"),))


def cut(name: str, text: str, strike: Callable[[Target], None]) -> Fault:
    return Fault(
        name=name,
        text=text,
        strike=strike,
        plan=NETWORK,
        means=network.missing_means,
        has_stale_leaders=True,
    )


def loop(name: str, text: str, strike: Callable[[Target], None], plan: Plan = LOOP) -> Fault:
    return Fault(name=name, text=text, strike=strike, plan=plan, means=disks.loop_missing)


def shimmed(name: str, text: str, strike: Callable[[Target], None]) -> Fault:
    return Fault(name=name, text=text, strike=strike, plan=SHIM, means=shim.missing_means)


_LISTED = (
    Fault(name="nothing", text="no fault at all", strike=signals.do_nothing, has_outages=False),
    Fault(
        name="slow-coordinator",
        text="leaders wait for what transaction coordinators say",
        strike=signals.do_nothing,
        plan=SLOW_LINKS,
        has_outages=False,
    ),
    Fault(
        name="slow-coordinator-killed",
        text="the same, and kill -9 of brokers",
        strike=signals.kill_any,
        plan=SLOW_LINKS,
    ),
    Fault(name="kill-leader", text="kill -9 of a leader", strike=signals.kill_leader),
    Fault(name="kill-controller", text="kill -9 of the controller", strike=signals.kill_controller),
    Fault(name="kill-any", text="kill -9 and start at once", strike=signals.kill_any),
    Fault(name="kill-all", text="kill -9 of all brokers", strike=signals.kill_all),
    Fault(
        name="kill-in-turn",
        text="kill -9 of two brokers, one after the other",
        strike=signals.kill_in_turn,
    ),
    Fault(
        name="kill-successor",
        text="kill -9 of a leader and of whoever takes over",
        strike=signals.kill_successor,
    ),
    Fault(
        name="return-first",
        text="kill -9 of all, and who missed the most is back first",
        strike=signals.return_first,
    ),
    Fault(
        name="pause-followers",
        text="SIGSTOP of the followers, then kill -9 of the leader",
        strike=signals.pause_followers,
    ),
    Fault(name="roll", text="SIGTERM and start again", strike=signals.stop_in_order),
    Fault(
        name="kill-guardian",
        text="kill -9 of a guardian, then of its broker",
        strike=signals.kill_guardian,
    ),
    Fault(
        name="pause-leader",
        text="SIGSTOP of a leader",
        strike=signals.pause_leader,
        has_stale_leaders=True,
    ),
    Fault(
        name="pause-controller",
        text="SIGSTOP of the controller",
        strike=signals.pause_controller,
        has_stale_leaders=True,
    ),
    Fault(name="pause-zookeeper", text="SIGSTOP of ZooKeeper", strike=signals.pause_zookeeper),
    Fault(name="kill-zookeeper", text="kill -9 of ZooKeeper", strike=signals.kill_zookeeper),
    Fault(
        name="kill-zookeeper-and-leader",
        text="kill -9 of ZooKeeper and a leader",
        strike=signals.kill_zookeeper_and_leader,
    ),
    Fault(
        name="mix",
        text="kills and pauses of all kinds at once",
        strike=signals.mix,
        has_stale_leaders=True,
    ),
    Fault(
        name="kill-ensemble-leader",
        text="kill -9 of the leader of three ZooKeepers",
        strike=signals.kill_ensemble_leader,
        plan=ENSEMBLE,
    ),
    Fault(
        name="lose-quorum",
        text="two of three ZooKeepers down for 30 s",
        strike=signals.lose_quorum,
        plan=ENSEMBLE,
    ),
    cut(
        "cut-followers",
        "a leader and the other brokers cut apart",
        network.cut_leader_from_followers,
    ),
    cut("cut-zookeeper", "a leader and ZooKeeper cut apart", network.cut_leader_from_zookeeper),
    cut("cut-leader", "a leader cut off from all but clients", network.cut_leader_off),
    cut("cut-controller", "the controller cut off", network.cut_controller_off),
    cut("cut-one-way", "a leader that is deaf or mute to some", network.cut_one_way),
    cut("cut-random", "any one-way cuts", network.cut_at_random),
    cut("cut-and-kill", "cuts, kills and pauses at once", network.cut_and_kill),
    Fault(
        name="disk-full",
        text="no byte left for a while",
        strike=disks.fill_disk,
        plan=SMALL,
        means=disks.small_missing,
    ),
    loop("power-one", "power cut of a leader", disks.cut_power_of_one),
    loop("power-two", "power cut of two brokers", disks.cut_power_of_two),
    loop(
        "power-but-one",
        "power cut of two, kill -9 of the third, which is back last",
        disks.cut_power_of_all_but_one,
    ),
    loop("power-all", "power cut of all, synced", disks.cut_power_of_all, SYNCED_LOOP),
    Fault(
        name="torn-tails",
        text="ends of files damaged while down",
        strike=damage.tear_tails,
        plan=SEGMENTS,
    ),
    Fault(
        name="lost-disk",
        text="a broker comes back with nothing",
        strike=damage.lose_disk,
        plan=SEGMENTS,
    ),
    Fault(
        name="bit-rot",
        text="a bit of an old record turned on one replica",
        strike=damage.rot,
        plan=SEGMENTS,
        has_rot=True,
    ),
    shimmed("clock", "wall clock of a leader jumps", shim.shift_clock),
    shimmed("slow-disk", "slow writes and syncs", shim.slow_disk),
    shimmed("failing-disk", "writes or syncs fail with EIO", shim.failing_disk),
    shimmed(
        "join-new-leader",
        "a follower sticks in its first write under a new leader, which dies",
        joining.join_new_leader,
    ),
    shimmed(
        "join-unseen",
        "a follower comes back with nothing and sticks, and its leader dies",
        joining.join_unseen,
    ),
)
FAULTS = {fault.name: fault for fault in _LISTED}
SHORT = ("kill-leader", "kill-controller", "pause-leader", "kill-all")
