"""Each known mistake, put into the brokers of a real cluster, is found by the checker."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.faults.launching import deployment_of
from tests.faults.mutants import MUTANTS, Mutant
from tests.faults.rounds import chosen_clients, play
from tests.faults.table import FAULTS

ROUNDS_MAX = 6
SECONDS = 15.0


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=lambda mutant: mutant.name)
def test_the_checker_catches(mutant: Mutant, tmp_path: Path) -> None:
    fault = FAULTS[mutant.fault]
    reason = fault.means()
    if reason is not None:
        pytest.skip(reason)
    seen: dict[str, int] = {}
    with deployment_of(tmp_path / "cluster", replace(fault.plan, mutant=mutant.name)) as cluster:
        for turn in range(ROUNDS_MAX):
            played = play(
                cluster,
                fault,
                tmp_path / f"round-{turn}",
                topic=f"{mutant.name}-{turn}",
                specs=chosen_clients(mutant.clients, turn),
                seconds=SECONDS,
                seed=f"mutant/{turn}",
            )
            seen |= played.verdict.violations
            if mutant.caught_by & set(seen):
                return
    raise AssertionError(f"{mutant.name} got away in {ROUNDS_MAX} rounds; seen: {seen}")


def test_every_mutant_names_a_fault_and_checks_that_exist() -> None:
    source = "".join(p.read_text() for p in Path(__file__).parent.glob("kcheck/*.py"))
    for mutant in MUTANTS.values():
        assert mutant.fault in FAULTS
        for check in mutant.caught_by - {"not-healed"}:
            assert f'check="{check}"' in source
