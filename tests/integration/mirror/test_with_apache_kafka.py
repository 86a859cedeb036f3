"""A mirror between Penstock and an Apache Kafka, both ways, and Java's own client of mirrors."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.mirror.conftest import Clusters
from tests.integration.mirror.rig import (
    Load,
    catch_up,
    group_offsets,
    make_topic,
    mirroring,
    read_all,
    read_in_group,
)
from tests.support.apache_kafka import CURRENT, KafkaProcess
from tests.support.java import compiled, run_java
from tests.support.mirror_process import settings
from tests.support.outside import needs
from tests.support.processes import ROOT
from tests.support.waiting import eventually

pytestmark = pytest.mark.kafka
JUDGE = ROOT / "tests" / "compat" / "java" / "MirrorJudge.java"


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    quick = {"group.initial.rebalance.delay.ms": "0"}
    with KafkaProcess(needs(CURRENT), tmp_path_factory.mktemp("kafka"), quick) as running:
        running.start()
        yield running.address


def test_records_and_groups_go_both_ways(apache: str, clusters: Clusters) -> None:
    loads = {}
    for alias, bootstrap in (("A", apache), ("B", clusters.b)):
        make_topic(bootstrap, "shared")
        loads[alias] = Load(bootstrap, "shared", codec="gzip")
        loads[alias].some(rounds=2)
    before = read_in_group(apache, "readers", "shared", 9)
    given = settings(apache, clusters.b, topics="shared", B_TO_A__enabled="true")
    with mirroring(given) as config:
        for alias, bootstrap in (("A", clusters.b), ("B", apache)):
            kept = loads[alias].kept
            total = sum(map(len, kept.values()))
            assert read_all(bootstrap, f"{alias}.shared", total) == kept
        catch_up(config)
        eventually(lambda: sum(group_offsets(clusters.b, "readers").values()) >= 9, what="groups")
    total = sum(map(len, loads["A"].kept.values()))
    after = read_in_group(clusters.b, "readers", "A.shared", total - 9)
    for at, kept_there in loads["A"].kept.items():
        assert [value for one, value in [*before, *after] if one == at] == kept_there


def test_javas_own_client_understands_what_the_mirror_tells(clusters: Clusters) -> None:
    class_path = compiled(JUDGE, Path(needs("mirror-4.3.1")))
    make_topic(clusters.a, "judged")
    load = Load(clusters.a, "judged")
    load.some(rounds=1)
    read_in_group(clusters.a, "judges", "judged", 9)
    with mirroring(settings(clusters.a, clusters.b, topics="judged")) as config:
        catch_up(config)
        eventually(lambda: sum(group_offsets(clusters.b, "judges").values()) >= 9, what="groups")
        said = run_java(class_path, "MirrorJudge", clusters.b, "A", "judges")
    told = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    assert told["upstream"] == "[A]"
    assert told["hops"] == "1"
    assert told["heartbeats"] == "[A.heartbeats, heartbeats]"
    assert told["checkpoints"] == "[A.checkpoints.internal]"
    here = group_offsets(clusters.b, "judges")
    pairs = ", ".join(f"{topic}-{at}={offset}" for (topic, at), offset in sorted(here.items()))
    assert told["offsets"] == f"{{{pairs}}}"
