"""The command itself, with its tasks on Spark: killed in the middle, started again, stopped."""

from pathlib import Path

from tests.integration.mirror.conftest import Clusters
from tests.integration.mirror.rig import (
    Load,
    catch_up,
    group_offsets,
    make_topic,
    read_all,
    read_in_group,
)
from tests.support.mirror_process import MirrorProcess, settings
from tests.support.waiting import eventually

from penstock.mirror.config import MirrorConfig
from penstock.mirror.progress import progress_of


def test_a_mirror_that_is_killed_loses_and_doubles_nothing(
    clusters: Clusters, tmp_path: Path
) -> None:
    make_topic(clusters.a, "killed")
    load = Load(clusters.a, "killed")
    load.some()
    before = read_in_group(clusters.a, "movers", "killed", 11)
    given = settings(clusters.a, clusters.b, topics="killed")
    config = MirrorConfig.of(given)
    with MirrorProcess(tmp_path / "mirror", given) as mirror:
        eventually(lambda: _copied(config) > 0, timeout_s=180, every_s=0.2, what="the first copy")
        load.some(rounds=6)
        mirror.kill()
        load.some()
        mirror.start()  # While what the first one left may still be at work.
        load.some()
        catch_up(config)
        total = sum(map(len, load.kept.values()))
        assert read_all(clusters.b, "A.killed", total) == load.kept
        eventually(
            lambda: sum(group_offsets(clusters.b, "movers").values()) >= 11,
            timeout_s=300,
            what="groups",
        )
        assert mirror.stop() == 0
    told = mirror.log.read_text()
    assert "Traceback" not in told, told
    assert "Stopped" in told
    after = read_in_group(clusters.b, "movers", "A.killed", total - 11)
    for at, kept in load.kept.items():
        assert [value for partition, value in [*before, *after] if partition == at] == kept


def _copied(config: MirrorConfig) -> int:
    return sum(one.copied for one in progress_of(config, config.flows[0]) if one.topic == "killed")
