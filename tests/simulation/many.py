"""Many runs, each in a forked process: nothing of one can touch another, and the dead stay dead.

The parent imports everything and simulates nothing, so every run begins from the same state.
"""

import argparse
import gc
import os
import pickle
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

from tests.simulation import determinism
from tests.simulation.mutants import MUTANTS, Mutant
from tests.simulation.run import Report, simulate
from tests.simulation.warm_up import warm_up

DURATION_S = 16.0
_MEMORY = Path("/dev/shm")  # A disk of memory, where there is one.


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many runs")
    parser.add_argument("--first", type=int, help="the first seed; else 0, or a mutant's")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--processes", type=int, default=2, help="how many at once")
    parser.add_argument(
        "--duration", type=float, default=DURATION_S, help="virtual seconds of faults"
    )
    parser.add_argument("--mutant", help="take one guard out of the product first")
    parser.add_argument("--mutants", action="store_true", help="show that every one is noticed")
    parser.add_argument("--stop", action="store_true", help="stop at the first violation")
    parser.add_argument("-v", action="store_true", dest="verbose", help="show all that happens")
    asked = parser.parse_args(arguments)
    mutant = MUTANTS[asked.mutant] if asked.mutant else None
    first = asked.first if asked.first is not None else mutant.seed if mutant else 0
    seeds = [asked.seed] if asked.seed is not None else range(first, first + asked.seeds)
    if asked.mutants:
        return hunt(asked.seeds, processes=asked.processes, duration_s=asked.duration)
    prepare = mutant.apply if mutant else None
    reports = []
    for report in run_all(
        seeds,
        processes=asked.processes,
        duration_s=asked.duration,
        shown=asked.verbose,
        prepare=prepare,
    ):
        reports.append(report)
        if report.violations or asked.verbose:
            print(report)
        for violation in report.violations[:5]:
            print("   ", violation[:1500])
        sys.stdout.flush()
        if report.violations and asked.stop:
            break
    print(summary(reports))
    return 1 if any(report.violations for report in reports) else 0


def hunt(seeds_max: int, *, processes: int, duration_s: float) -> int:
    """Each mutant until it is noticed, at most on so many seeds."""
    blind = 0
    for name, mutant in MUTANTS.items():
        found = noticed(mutant, seeds_max, processes=processes, duration_s=duration_s)
        blind += found is None
        told = f"seed {found.seed}: {found.violations[0][:160]}" if found else "NOT NOTICED"
        print(f"without {name}: {told}", flush=True)
    return 1 if blind else 0


def noticed(
    mutant: Mutant, seeds_max: int, *, processes: int = 2, duration_s: float = DURATION_S
) -> Report | None:
    seeds = range(mutant.seed, mutant.seed + seeds_max)
    runs = run_all(seeds, processes=processes, duration_s=duration_s, prepare=mutant.apply)
    try:
        return next((report for report in runs if report.violations), None)
    finally:
        runs.close()


def summary(reports: Sequence[Report]) -> str:
    def total(name: str) -> int:
        return sum(getattr(report, name) for report in reports)

    failed = [report.seed for report in reports if report.violations]
    return (
        f"{len(reports)} runs, {len(failed)} with violations{': ' if failed else ''}"
        f"{' '.join(map(str, failed[:20]))}; {total('faults')} faults, {total('elections')} "
        f"elections, {total('isr_changes')} ISR changes, {total('acked')} records acked, "
        f"{total('committed')} transactions committed, {total('read')} read, "
        f"{total('messages')} messages, "
        f"{sum(r.virtual_s for r in reports):.0f} virtual s, "
        f"{sum(r.real_s for r in reports):.0f} s of work"
    )


def run_all(
    seeds: Iterable[int],
    *,
    processes: int = 2,
    duration_s: float = DURATION_S,
    shown: bool = False,
    prepare: Callable[[], None] | None = None,
) -> Generator[Report, None, None]:
    """Reports as the runs end."""
    waiting = list(reversed(list(seeds)))
    running: dict[int, tuple[int, int, Path]] = {}
    warm_up()
    gc.collect()
    gc.freeze()
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                seed = waiting.pop()
                pid, fd, directory = _fork(seed, duration_s, shown, prepare)
                running[fd] = (seed, pid, directory)
            yield _next_report(running)
    finally:
        for _, pid, directory in running.values():
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            shutil.rmtree(directory, ignore_errors=True)


def _fork(
    seed: int, duration_s: float, shown: bool, prepare: Callable[[], None] | None
) -> tuple[int, int, Path]:
    home = _MEMORY if _MEMORY.is_dir() else None
    directory = Path(tempfile.mkdtemp(prefix="penstock-simulation-", dir=home))
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write_fd)
        return pid, read_fd, directory
    try:
        os.close(read_fd)
        gc.disable()  # What is dead must not be found and finished.
        if prepare is not None:
            prepare()
        report = simulate(seed, directory, duration_s=duration_s, shown=shown)
        with os.fdopen(write_fd, "wb") as pipe:
            pipe.write(pickle.dumps(report))
    except BaseException:  # noqa: BLE001 - shown, and told by the exit code
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _next_report(running: dict[int, tuple[int, int, Path]]) -> Report:
    import select

    poller = select.poll()
    for waiting in running:
        poller.register(waiting, select.POLLIN)
    fd = poller.poll()[0][0]
    seed, pid, directory = running.pop(fd)
    started_s = determinism.real_time_s()
    with os.fdopen(fd, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    shutil.rmtree(directory, ignore_errors=True)
    if not data:
        lost = f"the process of the run died after {determinism.real_time_s() - started_s:.1f} s"
        return Report(seed=seed, violations=[lost])
    report: Report = pickle.loads(data)
    return report
