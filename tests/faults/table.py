"""Every fault by name."""

from tests.faults.deployment import Plan
from tests.faults.injectors import signals
from tests.faults.injectors.fault import Fault

ENSEMBLE = Plan(zookeepers=3)

_LISTED = (
    Fault(name="kill-leader", text="kill -9 of a leader", strike=signals.kill_leader),
    Fault(name="kill-controller", text="kill -9 of the controller", strike=signals.kill_controller),
    Fault(name="kill-any", text="kill -9 and start at once", strike=signals.kill_any),
    Fault(name="kill-all", text="kill -9 of all brokers", strike=signals.kill_all),
    Fault(
        name="kill-in-turn",
        text="kill -9 of two brokers, one after the other",
        strike=signals.kill_in_turn,
    ),
    Fault(name="roll", text="SIGTERM and start again", strike=signals.stop_in_order),
    Fault(
        name="kill-guardian",
        text="kill -9 of a guardian, then of its broker",
        strike=signals.kill_guardian,
    ),
    Fault(name="pause-leader", text="SIGSTOP of a leader", strike=signals.pause_leader),
    Fault(
        name="pause-controller", text="SIGSTOP of the controller", strike=signals.pause_controller
    ),
    Fault(name="pause-zookeeper", text="SIGSTOP of ZooKeeper", strike=signals.pause_zookeeper),
    Fault(name="kill-zookeeper", text="kill -9 of ZooKeeper", strike=signals.kill_zookeeper),
    Fault(
        name="kill-zookeeper-and-leader",
        text="kill -9 of ZooKeeper and a leader",
        strike=signals.kill_zookeeper_and_leader,
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
)
FAULTS = {fault.name: fault for fault in _LISTED}
SHORT = ("kill-leader", "kill-controller", "pause-leader", "kill-all", "kill-zookeeper", "roll")
