"""Which kind of deployment a plan calls for."""

from pathlib import Path

from tests.faults.deployment import Deployment, Plan
from tests.faults.injectors.disks import LoopDeployment, SmallDiskDeployment
from tests.faults.injectors.network import NetworkDeployment
from tests.faults.injectors.shim import ShimDeployment


def deployment_of(directory: Path, plan: Plan) -> Deployment:
    """Not started yet; it is a context manager that starts and ends it."""
    directory.mkdir(parents=True, exist_ok=True)
    return _kind(plan)(directory=directory, plan=plan)


def _kind(plan: Plan) -> type[Deployment]:
    if plan.has_network:
        return NetworkDeployment
    if plan.has_shim:
        return ShimDeployment
    return {"plain": Deployment, "small": SmallDiskDeployment, "loop": LoopDeployment}[plan.disk]
