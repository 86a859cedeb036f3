"""Flows between two real clusters, in threads: to the record, in all that they bring over."""

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
from tests.support.mirror_process import settings
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.operations.configs import ConfigChange, ConfigResource, ResourceType
from penstock.client.operations.topics import NewPartitions
from penstock.mirror.progress import progress_of


def test_every_group_goes_on_at_exactly_the_next_record(clusters: Clusters) -> None:
    make_topic(clusters.a, "orders")
    load = Load(clusters.a, "orders", codec="lz4")
    load.some()
    total = sum(map(len, load.kept.values()))
    seen = {
        group: read_in_group(clusters.a, group, "orders", count)
        for group, count in (("early", 5), ("middle", total // 2), ("all", total))
    }
    given = settings(clusters.a, clusters.b, topics="orders")
    with mirroring(given) as config:
        load.some()
        catch_up(config)
    with mirroring(given) as config:  # A second run begins a new epoch and new runs.
        load.some(rounds=1)
        catch_up(config)
        total = sum(map(len, load.kept.values()))
        assert read_all(clusters.b, "A.orders", total) == load.kept
        (one,) = [one for one in progress_of(config, config.flows[0]) if one.topic == "orders"]
        assert one.lag == 0 and one.copied > total
        eventually(lambda: group_offsets(clusters.b, "all"), what="groups on the target")
    for group, before in seen.items():
        rest = read_in_group(clusters.b, group, "A.orders", total - len(before))
        everything = [*before, *rest]
        for at, kept in load.kept.items():
            assert [value for partition, value in everything if partition == at] == kept, group


def test_active_on_both_sides_nothing_goes_in_a_circle(clusters: Clusters) -> None:
    make_topic(clusters.a, "both")
    make_topic(clusters.b, "both")
    loads = {"A": Load(clusters.a, "both"), "B": Load(clusters.b, "both")}
    for load in loads.values():
        load.some(rounds=1)
    given = settings(clusters.a, clusters.b, topics="both|.*[.]both", B_TO_A__enabled="true")
    with mirroring(given):
        for other, bootstrap in (("A", clusters.b), ("B", clusters.a)):
            kept = loads[other].kept
            total = sum(map(len, kept.values()))
            assert read_all(bootstrap, f"{other}.both", total) == kept
        eventually(lambda: "B.heartbeats" in _topics(clusters.a), what="heartbeats of B on A")
    named = {name for name in _topics(clusters.a) | _topics(clusters.b) if name.endswith("both")}
    assert named == {"both", "A.both", "B.both"}


def test_topics_grow_and_change_as_the_source_does(clusters: Clusters) -> None:
    make_topic(clusters.a, "grown", 1, retention_ms="777000")
    resource = ConfigResource(ResourceType.TOPIC, "A.grown")
    with (
        Admin(bootstrap_servers=clusters.a) as here,
        Admin(bootstrap_servers=clusters.b) as there,
        mirroring(settings(clusters.a, clusters.b, topics="grown")),
    ):
        eventually(lambda: "A.grown" in _topics(clusters.b), what="the topic")

        def setting() -> str | None:
            (entries,) = there.describe_configs([resource]).values()
            return next(one.value for one in entries if one.name == "retention.ms")

        assert setting() == "777000"
        here.create_partitions({"grown": NewPartitions(total_count=3)})
        change = ConfigChange(name="retention.ms", value="888000")
        here.alter_configs({ConfigResource(ResourceType.TOPIC, "grown"): [change]})
        load = Load(clusters.a, "grown", partitions=3)
        load.some(rounds=1)
        total = sum(map(len, load.kept.values()))
        eventually(
            lambda: len(there.describe_topics(["A.grown"])["A.grown"].partitions) == 3,
            what="three partitions",
        )
        assert read_all(clusters.b, "A.grown", total, partitions=3) == load.kept
        eventually(lambda: setting() == "888000", what="the new setting")


def test_who_returns_goes_on_where_he_was_on_the_other_side(clusters: Clusters) -> None:
    make_topic(clusters.a, "there-and-back")
    load = Load(clusters.a, "there-and-back")
    load.some(rounds=2)
    total = sum(map(len, load.kept.values()))
    first = read_in_group(clusters.a, "travellers", "there-and-back", 5)
    given = settings(
        clusters.a,
        clusters.b,
        topics="there-and-back",
        sync__group__offsets__back__enabled="true",
    )
    with mirroring(given) as config:
        catch_up(config)
        eventually(
            lambda: sum(group_offsets(clusters.b, "travellers").values()) >= 5,
            what="the group on the target",
        )
        second = read_in_group(clusters.b, "travellers", "A.there-and-back", 9)
        wanted = sum(group_offsets(clusters.b, "travellers").values())
        assert wanted >= 14
    third = read_in_group(clusters.a, "travellers", "there-and-back", total - 14)
    everything = [*first, *second, *third]
    for at, kept in load.kept.items():
        assert [value for partition, value in everything if partition == at] == kept


def _topics(bootstrap: str) -> set[str]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        return {one.name for one in admin.list_topics()}
