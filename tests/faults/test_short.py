"""A short fault run on one cluster: every promise holds, with clients of three families.

The long one is `make faults`; this one is small enough to run with all other tests.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.deployment import Deployment, Plan
from tests.faults.launching import deployment_of
from tests.faults.rounds import chosen_clients, play
from tests.faults.table import FAULTS, SHORT

IS_LONG = os.environ.get("PENSTOCK_LONG") == "1"
SECONDS = 30.0 if IS_LONG else 4.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment_of(tmp_path_factory.mktemp("faults"), Plan()) as running:
        yield running


def run(cluster: Deployment, name: str, directory: Path, turn: int) -> None:
    fault = FAULTS[name]
    played = play(
        cluster,
        fault,
        directory,
        topic=name,
        specs=chosen_clients("pipe" if turn % 2 else "small", turn),
        seconds=SECONDS,
        seed=f"short/{name}",
    )
    assert played.is_good, "\n".join([*played.verdict.lines(), *played.notes])
    assert played.verdict.acked > 0
    assert played.verdict.read > 0


@pytest.mark.parametrize("name", SHORT)
def test_a_cluster_keeps_its_promises(cluster: Deployment, tmp_path: Path, name: str) -> None:
    run(cluster, name, tmp_path, SHORT.index(name))


@pytest.mark.parametrize("name", ["cut-leader", "power-one"])
def test_a_cluster_keeps_its_promises_on_a_prepared_ground(tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    reason = fault.means()
    if reason is not None:
        pytest.skip(reason)
    with deployment_of(tmp_path / "cluster", fault.plan) as prepared:
        run(prepared, name, tmp_path / "round", 0)
