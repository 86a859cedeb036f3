"""Producers that begin their next transaction at once, on a cluster slow to tell of the last one.

The leaders' questions to transaction coordinators are held up on their way (injectors/slow_links),
so that the marker of each transaction comes while its successor waits for an answer. No client may
be given an error, and readers see what was committed and nothing else.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.faults.clients.foreign import EXTRAS, missing_family
from tests.faults.deployment import Deployment
from tests.faults.launching import deployment_of
from tests.faults.rounds import TRANSACTION_MS, ClientSpec, play, transactors
from tests.faults.table import FAULTS
from tests.support.outside import needs

SLOW = FAULTS["slow-coordinator"]
SECONDS = 6.0
MINUTES_LONG = 5.0
OLDER = "confluent-kafka"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployment_of(tmp_path_factory.mktemp("transactions"), SLOW.plan) as running:
        yield running
        assert not [text for node in running.brokers.values() for text in node.tracebacks()]


def spec(family: str, role: str, count: int = 1, stage: int = 0) -> ClientSpec:
    return ClientSpec(
        family=family,
        role=role,
        count=count,
        stage=stage,
        isolation="read_committed",
        transaction_ms=TRANSACTION_MS,
    )


def run(
    cluster: Deployment,
    name: str,
    directory: Path,
    *,
    topic: str,
    specs: Sequence[ClientSpec],
    seconds: float,
) -> None:
    played = play(
        cluster,
        FAULTS[name],
        directory,
        topic=topic,
        specs=specs,
        seconds=seconds,
        seed=f"transactions/{topic}",
        partitions=3,
    )
    lines = [*played.verdict.lines(), *played.notes]
    print("\n".join(lines))
    assert played.is_good, "\n".join(lines)
    assert played.verdict.committed > 0
    assert played.verdict.read > 0


@pytest.mark.parametrize("family", ["java", "franz-go"])
def test_the_next_transaction_may_begin_before_the_last_one_has_ended_everywhere(
    cluster: Deployment, tmp_path: Path, family: str
) -> None:
    needs(EXTRAS[family])
    specs = [
        spec(family, "transact", count=4),
        spec(family, "pipe"),
        spec(OLDER, "transact"),
        spec(OLDER, "pipe", stage=1),
    ]
    run(cluster, SLOW.name, tmp_path, topic=family, specs=specs, seconds=SECONDS)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["nothing", "kill-any", "slow-coordinator-killed"])
def test_eight_producers_and_their_chains_keep_every_promise(tmp_path: Path, name: str) -> None:
    """`make faults ARGS="--clients transactions --seconds N"` is the same for as long as wanted."""
    if missing_family("java") and missing_family("franz-go"):
        pytest.skip("no client of the newer protocol is to be had here")
    with deployment_of(tmp_path / "cluster", FAULTS[name].plan) as running:
        run(
            running,
            name,
            tmp_path / "round",
            topic=name,
            specs=transactors(0),
            seconds=MINUTES_LONG * 60,
        )
