"""Three hundred clusters, each with its own misfortunes; none loses what it acknowledged."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = 300
PIECE = 50  # Each has a limit of its own: a busy machine takes its time, and none hangs for long.


def simulation(*arguments: str, timeout_s: float = 1100) -> subprocess.CompletedProcess[str]:
    """In a process of its own: a run takes its process over for good."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def number_of(what: str, told: str) -> int:
    found = re.search(rf"(\d+) {what}", told)
    assert found, told
    return int(found[1])


@pytest.mark.timeout(1200)  # Half a minute on two idle cores.
@pytest.mark.parametrize("first", range(0, SEEDS, PIECE))
def test_no_seed_loses_a_record(first: int) -> None:
    done = simulation("--first", str(first), "--seeds", str(PIECE))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    told = done.stdout.splitlines()[-1]
    assert told.startswith(f"{PIECE} runs, 0 with violations")
    # An empty simulation would pass, too.
    assert number_of("faults", told) > 5 * PIECE
    assert number_of("elections", told) > 3 * PIECE
    assert number_of("ISR changes", told) > 8 * PIECE
    assert number_of("records acked", told) > 150 * PIECE


@pytest.mark.parametrize("seed", ["7", "16"])
def test_a_seed_replays_exactly(seed: str) -> None:
    first, second = (simulation("--seed", seed, "-v").stdout for _ in range(2))
    digests = [re.findall(r"in [\d.]+ s, ([0-9a-f]{16})", told) for told in (first, second)]
    assert len(digests[0]) == 1
    assert digests[0] == digests[1]


QUICK_MUTANTS = (
    "wait for the high watermark",
    "cut at all",
    "elect of ISR and ELR",
    "sequences",
    "epoch start",
    "loss is sticky",
    "controller fence",
    "fetch session order",
)


@pytest.mark.parametrize("guard", QUICK_MUTANTS)
def test_a_guard_that_is_missing_is_noticed(guard: str) -> None:
    done = simulation("--mutant", guard, "--seeds", "60", "--stop")
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert "1 with violations" in done.stdout


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_every_guard_that_is_missing_is_noticed() -> None:
    done = simulation("--mutants", "--seeds", "600", timeout_s=7000)
    assert done.returncode == 0, done.stdout
