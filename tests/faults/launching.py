"""Which kind of deployment a plan calls for."""

from pathlib import Path

from tests.faults.deployment import Deployment, Plan


def deployment_of(directory: Path, plan: Plan) -> Deployment:
    """Not started yet; it is a context manager that starts and ends it."""
    directory.mkdir(parents=True, exist_ok=True)
    return Deployment(directory=directory, plan=plan)
