"""Which kind of deployment a plan calls for."""

from pathlib import Path

from tests.faults.apache import ApacheDeployment
from tests.faults.deployment import Deployment, Plan
from tests.faults.injectors.disks import LoopDeployment, SmallDiskDeployment
from tests.faults.injectors.network import NetworkDeployment
from tests.faults.injectors.shim import ShimDeployment
from tests.faults.injectors.slow_links import SlowLinksDeployment
from tests.support.outside import needs


def deployment_of(directory: Path, plan: Plan, *, subject: str | None = None) -> Deployment:
    """Not started yet; it is a context manager that starts and ends it."""
    directory.mkdir(parents=True, exist_ok=True)
    if subject is not None:
        assert _kind(plan) is Deployment, "this fault is made for brokers of ours"
        return ApacheDeployment(directory=directory, plan=plan, jars=needs(subject))
    return _kind(plan)(directory=directory, plan=plan)


def _kind(plan: Plan) -> type[Deployment]:
    if plan.has_network:
        return NetworkDeployment
    if plan.has_shim:
        return ShimDeployment
    if plan.has_slow_links:
        return SlowLinksDeployment
    return {"plain": Deployment, "small": SmallDiskDeployment, "loop": LoopDeployment}[plan.disk]
