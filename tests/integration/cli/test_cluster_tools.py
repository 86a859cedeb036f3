"""The tools of a cluster on a cluster: three brokers of our own, one of which gets killed."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Done, command, run, start
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

from penstock.client.admin import Admin
from penstock.client.operations.configs import ConfigResource, ResourceType
from penstock.client.operations.topics import NewTopic


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        eventually(lambda: len(made.metadata().brokers) == 3, timeout_s=120)
        yield made


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[Admin]:
    with Admin(bootstrap_servers=cluster.bootstrap) as made:
        yield made


def tool(cluster: Cluster, name: str, *words: object, stdin: str = "", code: int = 0) -> Done:
    words = ("--bootstrap-server", cluster.bootstrap, *words)
    verb, *rest = name.split()
    done = run(verb, *rest, *words, stdin=stdin)
    assert done.code == code, f"{name} {words}: {done}"
    return done


def filled(cluster: Cluster, admin: Admin, topic: str, placed: dict[int, list[int]]) -> None:
    admin.create_topics([NewTopic(name=topic, assignments=placed)])
    cluster.until_in_sync(topic, len(placed[0]))
    lines = "".join(f"{number}\n" for number in range(200))
    acks = ["--producer-property", "acks=all"]
    tool(cluster, "console-producer", "--topic", topic, *acks, stdin=lines)


def records(cluster: Cluster, topic: str) -> list[str]:
    words = ["--topic", topic, "--from-beginning", "--max-messages", 200, "--timeout-ms", 20_000]
    return sorted(tool(cluster, "console-consumer", *words).lines, key=int)


def replicas(admin: Admin, topic: str) -> list[list[int]]:
    return [[n.id for n in p.replicas] for p in admin.describe_topics([topic])[topic].partitions]


def plan_file(directory: Path, topic: str, placed: dict[int, list[int]]) -> Path:
    entries = [{"topic": topic, "partition": p, "replicas": r} for p, r in placed.items()]
    file = directory / "plan.json"
    file.write_text(json.dumps({"version": 1, "partitions": entries}))
    return file


def throttles(admin: Admin, topic: str) -> dict[str, str | None]:
    resources = [ConfigResource(ResourceType.TOPIC, topic)]
    resources += [ConfigResource(ResourceType.BROKER, str(number)) for number in range(3)]
    return {
        f"{resource.name} {entry.name}": entry.value
        for resource, entries in admin.describe_configs(resources).items()
        for entry in entries
        if "throttled" in entry.name and entry.source.name.startswith("DYNAMIC")
    }


def test_partitions_are_moved_and_keep_their_records(
    cluster: Cluster, admin: Admin, tmp_path: Path
) -> None:
    filled(cluster, admin, "moved", {0: [0, 1], 1: [1, 0]})
    topics = tmp_path / "topics.json"
    topics.write_text('{"topics":[{"topic":"moved"}],"version":1}')
    words = ["--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2"]
    proposed = tool(cluster, "reassign-partitions", *words).lines
    assert proposed[0] == "Current partition replica assignment"
    paths = json.loads(proposed[1])["partitions"][0]["log_dirs"]
    assert paths == [str(cluster.brokers[number].data) for number in (0, 1)]
    places = [entry["replicas"] for entry in json.loads(proposed[4])["partitions"]]
    assert [sorted(place) for place in places] == [[1, 2], [1, 2]]

    plan = ["--reassignment-json-file", plan_file(tmp_path, "moved", {0: [1, 2], 1: [2, 1]})]
    begun = tool(cluster, "reassign-partitions", "--execute", "--throttle", 10_000_000, *plan)
    assert begun.lines[-1] == "Successfully started partition reassignments for moved-0,moved-1"
    # Whichever broker is asked hears of settings and moves a moment after the controller.
    rate = "2 follower.replication.throttled.rate"
    eventually(lambda: throttles(admin, "moved").get(rate) == "10000000")

    def verified() -> list[str]:
        lines = tool(cluster, "reassign-partitions", "--verify", *plan).lines
        return lines if "still in progress" not in "".join(lines) else []

    assert eventually(verified, timeout_s=120)[:3] == [
        "Status of partition reassignment:",
        "Reassignment of partition moved-0 is completed.",
        "Reassignment of partition moved-1 is completed.",
    ]
    eventually(lambda: throttles(admin, "moved") == {})
    eventually(lambda: replicas(admin, "moved") == [[1, 2], [2, 1]])
    assert records(cluster, "moved") == [str(number) for number in range(200)]
    listed = tool(cluster, "reassign-partitions", "--list").lines
    assert listed == ["No partition reassignments found."]


def test_a_move_to_a_broker_that_is_not_there_is_refused(
    cluster: Cluster, admin: Admin, tmp_path: Path
) -> None:
    admin.create_topics([NewTopic(name="stays", assignments={0: [0, 1]})])
    cluster.until_in_sync("stays", 2)
    plan = ["--reassignment-json-file", plan_file(tmp_path, "stays", {0: [1, 9]})]
    done = tool(cluster, "reassign-partitions", "--execute", *plan, code=1)
    assert done.err == "Error: Unknown broker id 9\n"
    assert replicas(admin, "stays") == [[0, 1]]


def test_the_directories_of_all_brokers_are_told(cluster: Cluster, admin: Admin) -> None:
    filled(cluster, admin, "sized", {0: [0, 1, 2]})
    lines = tool(cluster, "log-dirs", "--describe", "--topic-list", "sized").lines
    assert lines[1] == "Received log directory information from brokers 0,1,2"
    found = json.loads(lines[2])["brokers"]
    sizes = {
        broker["broker"]: [part["size"] for part in broker["logDirs"][0]["partitions"]]
        for broker in found
    }
    assert sizes[0] == sizes[1] == sizes[2]
    assert sizes[0][0] > 200


def test_replicas_are_compared_while_records_come(cluster: Cluster, admin: Admin) -> None:
    filled(cluster, admin, "compared", {0: [0, 1, 2]})
    words = ["--broker-list", cluster.bootstrap, "--topic-white-list", "compared", "--time", -2]
    process = start(command("replica-verification", *words, "--report-interval-ms", 100))
    try:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(": verification process is started.\n")
        line = next(line for line in process.stdout if "max lag is 0 " in line)
        assert line.endswith(" for partition [compared,0] at offset 200 among 1 partitions\n")
    finally:
        process.terminate()
        assert process.wait(120) == 0


def test_a_dead_broker_shows_everywhere_until_it_is_back(cluster: Cluster, admin: Admin) -> None:
    filled(cluster, admin, "dented", {0: [0, 1, 2], 1: [1, 2, 0]})
    filled(cluster, admin, "pair", {0: [2, 0]})
    admin.create_topics([NewTopic(name="alone", assignments={0: [2]})])
    eventually(lambda: cluster.partition("alone").leader_id == 2)

    def whole() -> Done:
        return tool(cluster, "cluster status", "--check")

    assert "Nothing is wrong." in eventually(whole, timeout_s=120).out
    cluster.brokers[2].kill()
    eventually(lambda: cluster.partition("pair").leader_id == 0, timeout_s=120)
    eventually(lambda: cluster.partition("alone").leader_id == -1, timeout_s=120)
    eventually(lambda: 2 not in cluster.partition("dented", 0).isr_nodes, timeout_s=120)

    def shown(name: str) -> list[str]:
        described = tool(cluster, "topics", "--describe", f"--{name}").lines
        pairs = [line.split("\t") for line in described]
        return [f"{p[1].split()[1]}-{p[2].split()[1]}" for p in pairs if p[1] != "Topic: moved"]

    named = {"dented-0", "dented-1", "pair-0", "alone-0"}
    eventually(lambda: named <= set(shown("under-replicated-partitions")), timeout_s=120)
    eventually(lambda: shown("unavailable-partitions") == ["alone-0"], timeout_s=120)
    assert {"alone-0", "pair-0"} <= set(shown("under-min-isr-partitions"))
    assert {"dented-0", "dented-1"} <= set(shown("at-min-isr-partitions"))
    told = tool(cluster, "cluster status", "--check", code=1).out
    assert "broker 2 is gone" in told
    assert "1 partition with no leader, so nobody can read or write them: alone-0" in told
    failed = tool(
        cluster, "leader-election", "--election-type", "preferred", "--topic", "pair",
        "--partition", 0, code=1,
    )  # fmt: skip
    assert "Error completing leader election (PREFERRED) for partition: pair-0: " in failed.out

    cluster.brokers[2].start()
    cluster.until_in_sync("dented")
    cluster.until_in_sync("pair", 2)
    words = ["--election-type", "preferred", "--topic", "pair", "--partition", 0]
    assert tool(cluster, "leader-election", *words).lines == [
        "Successfully completed leader election (PREFERRED) for partitions pair-0"
    ]
    assert tool(cluster, "leader-election", *words).lines == [
        "Valid replica already elected for partitions pair-0"
    ]
    everything = tool(cluster, "preferred-replica-election")
    assert "Error" not in everything.out
    assert "Nothing is wrong." in eventually(whole, timeout_s=120).out
    for topic in ("dented", "pair"):
        assert records(cluster, topic) == [str(number) for number in range(200)]


def test_a_developers_cluster_keeps_its_data(tmp_path: Path) -> None:
    words = ["cluster", "up", "--dir", tmp_path / "dev", "--brokers", 2]
    for turn in range(2):
        process = start(command(*words))  # type: ignore[arg-type]
        try:
            assert process.stdout is not None
            shown = ""
            while "Ctrl-C stops it." not in shown:
                line = process.stdout.readline()
                assert line, shown + (process.stderr.read() if process.stderr else "")
                shown += line
            (address,) = {
                word
                for line in shown.splitlines()
                if "cluster status" in line
                for word in line.split()
                if word.startswith("localhost:")
            }
            at = ["--bootstrap-server", address]
            if turn == 0:
                made = ["--create", "--topic", "kept", "--partitions", 3, "--replication-factor", 2]
                assert run("topics", *at, *made).code == 0
            listed = run("topics", *at, "--list")
            assert "kept" in listed.lines, listed
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 0, process.stderr.read() if process.stderr else ""
    configs = sorted(file.name for file in (tmp_path / "dev" / "config").iterdir())
    assert configs == ["server-0.properties", "server-1.properties", "zookeeper.properties"]


def test_brokers_are_found_by_the_address_of_their_zookeeper(cluster: Cluster) -> None:
    at = cluster.zookeeper.connect
    made = ["--create", "--topic", "of-old", "--partitions", 1, "--replication-factor", 3]
    assert run("topics", "--zookeeper", at, *made).out == "Created topic of-old.\n"
    assert "of-old" in run("topics", "--zookeeper", at, "--list").lines
    wrong = run("topics", "--zookeeper", f"{at}/elsewhere", "--list")
    assert wrong.code == 1
    assert "knows of no live broker" in wrong.err
    assert "elsewhere" not in run("zookeeper-shell", at, "ls", "/").out
