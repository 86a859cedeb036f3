"""kafka-console-consumer as a member of a group: what it prints is what the group has read."""

from pathlib import Path

import confluent_kafka
import pytest
from tests.integration.cli.conftest import Tool
from tests.integration.cli_groups.conftest import Cluster

READ = "console-consumer"
UNTIL_SILENCE = ["--timeout-ms", "5000"]


def committed(tool: Tool, group: str) -> list[list[str]]:
    """Partition, offset, end and lag of a group."""
    lines = tool("consumer-groups", "--describe", "--group", group).lines
    return [line.split()[2:6] for line in lines[2:]]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_where_it_stopped(tool: Tool, cluster: Cluster, protocol: str) -> None:
    topic, group = cluster.create(f"go-on-{protocol}", records=10), f"go-on-{protocol}"
    base = ["--topic", topic, "--group", group, "--from-beginning"]
    base += ["--consumer-property", f"group.protocol={protocol}"]
    first = tool(READ, *base, "--max-messages", 4).lines
    # Polled and not printed is not read: the rest is still there for the next.
    assert committed(tool, group) == [["0", "4", "10", "6"]]
    rest = tool(READ, *base, "--max-messages", 6).lines
    assert first + rest == [f"v{number}" for number in range(10)]
    assert committed(tool, group) == [["0", "10", "10", "0"]]


def test_a_record_that_ends_the_consumer_leaves_the_rest_unread(
    tool: Tool, cluster: Cluster
) -> None:
    topic = cluster.create("halts")
    tool("console-producer", "--topic", topic, stdin="12345678\nodd\n87654321\n")
    base = ["--topic", topic, "--group", "halts", "--from-beginning"]
    done = tool(READ, *base, "--value-deserializer", "long", code=1)
    assert len(done.lines) == 1
    assert committed(tool, "halts") == [["0", "2", "3", "1"]]


@pytest.mark.parametrize("where", ["option", "property", "file"])
def test_the_group_is_named_in_any_of_three_places(
    tool: Tool, cluster: Cluster, tmp_path: Path, where: str
) -> None:
    topic, group = cluster.create(f"named-{where}", records=3), f"named-{where}"
    file = tmp_path / "consumer.properties"
    file.write_text(f"group.id={group}\n")
    words = {
        "option": ["--group", group],
        "property": ["--consumer-property", f"group.id={group}"],
        "file": ["--consumer.config", str(file)],
    }[where]
    done = tool(READ, "--topic", topic, "--from-beginning", "--max-messages", 3, *words)
    assert done.lines == ["v0", "v1", "v2"]
    assert committed(tool, group) == [["0", "3", "3", "0"]]


def test_two_names_for_the_group_are_refused(tool: Tool, cluster: Cluster) -> None:
    topic = cluster.create("two-names")
    words = ["--topic", topic, "--group", "a", "--consumer-property", "group.id=b"]
    done = tool(READ, *words, code=1)
    assert done.err.splitlines()[0].endswith("do not match. Detected group ids: 'a', 'b'")
    words = ["--topic", topic, "--consumer-property", "group.id=b", "--partition", "0"]
    done = tool(READ, *words, code=1)
    assert done.err.startswith("Options group and partition cannot be specified together.")


def test_two_places_to_begin_are_refused(tool: Tool, cluster: Cluster) -> None:
    topic = cluster.create("two-places")
    words = ["--topic", topic, "--consumer-property", "auto.offset.reset=latest"]
    done = tool(READ, *words, "--from-beginning", code=1)
    assert done.err.startswith(
        "Can't simultaneously specify --from-beginning and 'auto.offset.reset=latest'"
    )


def test_members_share_a_topic_found_by_pattern(tool: Tool, cluster: Cluster) -> None:
    cluster.create("by-pattern-1", records=2)
    cluster.create("by-pattern-2", records=2)
    base = ["--group", "by-pattern", "--include", "by-pattern-.*", "--from-beginning"]
    assert sorted(tool(READ, *base, "--max-messages", 4).lines) == ["v0", "v0", "v1", "v1"]


def test_only_what_is_committed_is_read_when_asked_for(tool: Tool, cluster: Cluster) -> None:
    topic = cluster.create("isolated")
    settings = {"bootstrap.servers": cluster.address, "transactional.id": "isolated"}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(120)
    for value, ends_well in (("kept", True), ("thrown away", False), ("kept too", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(120)
        (producer.commit_transaction if ends_well else producer.abort_transaction)(30)
    base = ["--topic", topic, "--from-beginning"]
    everything = tool(READ, *base, "--group", "dirty", "--max-messages", 3).lines
    assert everything == ["kept", "thrown away", "kept too"]
    words = ["--group", "clean", "--isolation-level", "read_committed", *UNTIL_SILENCE]
    assert tool(READ, *base, *words).lines == ["kept", "kept too"]
