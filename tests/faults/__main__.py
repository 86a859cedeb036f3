"""Faults with real processes: python -m tests.faults --fault kill-leader --rounds 5.

Prints a row per fault as it goes. Ends with 1 when any promise was broken; then the histories,
notes and broker logs of those rounds are kept, and their place is printed.
"""

import argparse
import itertools
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from confluent_kafka import KafkaException
from tests.faults.clients.foreign import EXTRAS, missing_family
from tests.faults.deployment import Deployment, Plan
from tests.faults.injectors.fault import Fault
from tests.faults.launching import deployment_of
from tests.faults.report import heading, row, skipped_row, summary
from tests.faults.rounds import Round, chosen_clients, play
from tests.faults.table import FAULTS, SHORT


def main() -> int:
    options = parsed()
    root = options.keep or Path(tempfile.mkdtemp(prefix="penstock-faults-"))
    root.mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}, artefacts in {root}")
    if options.clients == "transactions":
        for family in EXTRAS:
            if reason := missing_family(family):
                print(f"played without {family}: {reason}")
    print(heading(), flush=True)
    rounds: list[Round] = []
    unplayed = 0
    for fault, played in run(options, root):
        rounds += played
        unplayed += options.rounds - len(played)
        if played:
            print(row(fault, played), flush=True)
    is_good = not unplayed and all(one.is_good for one in rounds)
    for line in summary(rounds):
        print(line)
    if is_good and options.keep is None:
        shutil.rmtree(root)
    return 0 if is_good else 1


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    names = [*FAULTS, "all", "short"]
    parser.add_argument("--fault", nargs="+", choices=names, default=["short"], metavar="NAME",
                        help=f"one or more of: {', '.join(names)}")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0, help="of blows in each round")
    parser.add_argument(
        "--clients",
        default="full",
        help="small, pipe, full, transactions, or a list like aiokafka:send,...",
    )
    parser.add_argument("--seed", default=None, help="chooses targets and times")
    parser.add_argument("--brokers", type=int, default=3, help="1: a broker alone, no ZooKeeper")
    parser.add_argument(
        "--subject", default=None, help="kafka-4.3.1: Apache Kafka's brokers instead of ours"
    )
    parser.add_argument("--mutant", default=None, help="a broker with a known mistake in it")
    parser.add_argument("--keep", type=Path, default=None, help="keep everything in this directory")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = str(random.SystemRandom().randrange(1_000_000))
    return options


def chosen(names: Sequence[str]) -> list[Fault]:
    wanted: list[str] = []
    for name in names:
        wanted += {"all": list(FAULTS), "short": list(SHORT)}.get(name, [name])
    return [FAULTS[name] for name in dict.fromkeys(wanted)]


def plan_of(fault: Fault, options: argparse.Namespace) -> Plan:
    plan = replace(fault.plan, mutant=options.mutant)
    if options.brokers == 1:
        return replace(plan, brokers=1, zookeepers=0)
    return replace(plan, brokers=options.brokers)


def run(options: argparse.Namespace, root: Path) -> Iterator[tuple[Fault, list[Round]]]:
    """Faults whose plans are equal share a cluster."""
    faults = sorted(chosen(options.fault), key=lambda fault: str(plan_of(fault, options)))
    for number, (plan, group) in enumerate(groupby(faults, lambda f: plan_of(f, options))):
        able = []
        for fault in group:
            reason = fault.means()
            if reason is not None:
                print(skipped_row(fault, reason), flush=True)
            else:
                able.append(fault)
        for attempt in itertools.count():
            if not able:
                break
            place = root / f"cluster-{number}-{attempt}"
            with deployment_of(place, plan, subject=options.subject) as deployment:
                while able:
                    played: list[Round] = []
                    fault = able.pop(0)
                    is_broken = not play_all(deployment, fault, options, root, played)
                    yield fault, played
                    if is_broken:
                        break  # The rest gets a cluster that nobody left in the middle of a blow.


def play_all(
    deployment: Deployment,
    fault: Fault,
    options: argparse.Namespace,
    root: Path,
    played: list[Round],
) -> bool:
    """All rounds of a fault; False: one could not be played to its end, which is said."""
    try:
        for one in rounds_of(deployment, fault, options, root):
            played += [one]  # Those before a break count.
    except (AssertionError, OSError, RuntimeError, KafkaException) as error:
        print(f"{fault.name:<26} broke off: {type(error).__name__}: {error}", flush=True)
        return False
    return True


def rounds_of(
    deployment: Deployment, fault: Fault, options: argparse.Namespace, root: Path
) -> Iterator[Round]:
    for turn in range(options.rounds):
        yield play(
            deployment,
            fault,
            root / f"{fault.name}-{turn}",
            topic=f"{fault.name}-{turn}",
            specs=chosen_clients(options.clients, turn),
            seconds=options.seconds,
            seed=f"{options.seed}/{fault.name}/{turn}",
            partitions=3 if options.clients == "transactions" else 2,
        )


if __name__ == "__main__":
    sys.exit(main())
