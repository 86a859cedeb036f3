"""kafka-consumer-groups against real groups of both protocols."""

import re
from pathlib import Path

import pytest
from tests.integration.cli.conftest import Tool, run
from tests.integration.cli_groups.conftest import Cluster, Join, PyMember, RdMember, settled
from tests.support.broker import BrokerProcess
from tests.support.waiting import eventually

GROUPS = "consumer-groups"


def rows(text: str) -> list[list[str]]:
    """The cells of a table under its header."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [line.split() for line in lines[1:]]


def caught_up(tool: Tool, group: str, partitions: int) -> list[list[str]]:
    """The described offsets of a group, once it has read everything."""

    def look() -> list[list[str]]:
        found = rows(tool(GROUPS, "--describe", "--group", group).out)
        lags = [row[5] for row in found]
        return found if lags == ["0"] * partitions else []

    return eventually(look, timeout_s=120, what=f"group {group} without lag")


@pytest.fixture
def gone(cluster: Cluster, request: pytest.FixtureRequest) -> tuple[str, str]:
    """A group without members that has read a part of three partitions of ten records."""
    name = re.sub(r"\W+", "-", request.node.name)
    topic = cluster.create(f"t-{name}", 3, records=10)
    cluster.commit(f"g-{name}", topic, {0: 4, 1: 7})
    return f"g-{name}", topic


def offsets(tool: Tool, group: str) -> dict[int, int]:
    """What a group has committed, by partition."""
    found = rows(tool(GROUPS, "--describe", "--group", group).out)
    return {int(row[2]): int(row[3]) for row in found}


def planned(out: str) -> dict[int, int]:
    """The partitions and new offsets of a printed plan."""
    return {int(row[2]): int(row[3]) for row in rows(out)}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (RdMember, {}),
        (PyMember, {}),
        (RdMember, {"group_protocol": "consumer"}),
    ],
    ids=["librdkafka", "kafka-python", "new-protocol"],
)
def test_a_group_at_work_is_described_with_lag_and_members(
    tool: Tool,
    cluster: Cluster,
    join: Join,
    kind: type,
    settings: dict[str, str],
    request: pytest.FixtureRequest,
) -> None:
    name = request.node.callspec.id
    topic = cluster.create(f"work-{name}", 3, records=5)
    id_key = "client_id"
    first = join(kind, f"at-{name}", topic, **settings, **{id_key: "one"})
    second = join(kind, f"at-{name}", topic, **settings, **{id_key: "two"})
    eventually(lambda: sorted([first.assigned(), second.assigned()]) == [1, 2], timeout_s=120)
    found = caught_up(tool, f"at-{name}", 3)
    assert [row[:6] for row in sorted(found)] == [
        [f"at-{name}", topic, str(number), "5", "5", "0"] for number in range(3)
    ]
    assert sorted({row[8] for row in found}) == ["one", "two"]
    assert {row[7] for row in found} == {"/127.0.0.1"}
    members = rows(tool(GROUPS, "--describe", "--group", f"at-{name}", "--members").out)
    assert sorted((row[3], row[4]) for row in members) == sorted(
        (client, str(member.assigned())) for client, member in (("one", first), ("two", second))
    )
    assert {row[6] for row in found} == {row[1] for row in members}


def test_verbose_members_show_what_they_read(tool: Tool, cluster: Cluster, join: Join) -> None:
    topic = cluster.create("verbose", 2)
    old = join(RdMember, "verbose-old", topic, group_instance_id="static-1")
    new = join(RdMember, "verbose-new", topic, group_protocol="consumer")
    settled((old, 2), (new, 2))
    words = ["--describe", "--members", "--verbose", "--group"]
    row = rows(tool(GROUPS, *words, "verbose-old").out)[0]
    assert row[2] == "static-1"
    assert row[6:] == ["-", "verbose:0,1", "-", "-"]
    row = rows(tool(GROUPS, *words, "verbose-new").out)[0]
    assert row[6] == "verbose:0,1" and row[8] == "verbose:0,1"
    assert int(row[5]) >= 1


def test_the_state_of_groups_is_told(
    tool: Tool, broker: BrokerProcess, cluster: Cluster, join: Join, gone: tuple[str, str]
) -> None:
    topic = cluster.create("stately")
    settled((join(RdMember, "stately", topic), 1))
    row = rows(tool(GROUPS, "--describe", "--group", "stately", "--state").out)[0]
    assert row == ["stately", broker.address, "(0)", "range", "Stable", "1"]
    done = tool(GROUPS, "--describe", "--group", gone[0], "--state", "--verbose")
    assert done.err == f"\nConsumer group '{gone[0]}' has no active members.\n"
    assert rows(done.out)[0][3:] == ["-", "Empty", "-", "-", "0"]


def test_groups_are_listed_by_state_and_type(
    tool: Tool, cluster: Cluster, join: Join, gone: tuple[str, str]
) -> None:
    topic = cluster.create("listed")
    old = join(RdMember, "listed-old", topic)
    new = join(RdMember, "listed-new", topic, group_protocol="consumer")
    settled((old, 1), (new, 1))
    names = tool(GROUPS, "--list").lines
    assert {"listed-old", "listed-new", gone[0]} <= set(names)
    with_both = {row[0]: row[1:] for row in rows(tool(GROUPS, "--list", "--state", "--type").out)}
    assert with_both["listed-old"] == ["Classic", "Stable"]
    assert with_both["listed-new"] == ["Consumer", "Stable"]
    assert with_both[gone[0]] == ["Classic", "Empty"]
    empty = [row[0] for row in rows(tool(GROUPS, "--list", "--state", "empty").out)]
    assert gone[0] in empty and "listed-old" not in empty
    newer = [row[0] for row in rows(tool(GROUPS, "--list", "--type", "consumer").out)]
    assert "listed-new" in newer and "listed-old" not in newer
    all_kinds = {row[0]: row[1] for row in rows(tool("groups", "--list").out)}
    assert (all_kinds["listed-old"], all_kinds["listed-new"]) == ("Classic", "Consumer")


def test_all_groups_are_described_at_once(tool: Tool, gone: tuple[str, str]) -> None:
    done = tool(GROUPS, "--describe", "--all-groups")
    assert f"Consumer group '{gone[0]}' has no active members." in done.err
    assert [gone[0], gone[1], "0", "4", "10", "6", "-", "-", "-"] in rows(done.out)


def test_a_group_that_does_not_exist_is_an_error(tool: Tool) -> None:
    done = tool(GROUPS, "--describe", "--group", "nobody", code=1)
    assert (done.out, done.err) == ("", "\nError: Consumer group 'nobody' does not exist.\n")


def test_a_deleted_topic_does_not_hide_the_rest(tool: Tool, cluster: Cluster) -> None:
    topic = cluster.create("stays", records=3)
    doomed = cluster.create("goes", records=3)
    cluster.commit("half", topic, {0: 1})
    cluster.commit("half", doomed, {0: 1})
    tool("topics", "--delete", "--topic", doomed)
    found = rows(tool(GROUPS, "--describe", "--group", "half").out)
    assert ["half", "stays", "0", "1", "3", "2", "-", "-", "-"] in found


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--to-earliest"], {0: 0, 1: 0, 2: 0}),
        (["--to-latest"], {0: 10, 1: 10, 2: 10}),
        (["--to-offset", "3"], {0: 3, 1: 3, 2: 3}),
        (["--to-offset", "99"], {0: 10, 1: 10, 2: 10}),
        (["--to-current"], {0: 4, 1: 7, 2: 10}),
        (["--to-datetime", "1970-01-01T00:00:03.500"], {0: 3, 1: 3, 2: 3}),
        (["--to-datetime", "1970-01-01T01:00:03.500+01:00"], {0: 3, 1: 3, 2: 3}),
        (["--to-datetime", "2099-01-01T00:00:00.000"], {0: 10, 1: 10, 2: 10}),
        (["--by-duration", "P40000D"], {0: 0, 1: 0, 2: 0}),
        (["--by-duration", "PT1S"], {0: 10, 1: 10, 2: 10}),
    ],
)
def test_offsets_are_reset_to_where_the_options_say(
    tool: Tool, gone: tuple[str, str], words: list[str], expected: dict[int, int]
) -> None:
    group, topic = gone
    base = [GROUPS, "--reset-offsets", "--group", group, "--topic", topic, *words]
    assert planned_rows(tool(*base, "--dry-run").out) == expected
    assert offsets(tool, group) == {0: 4, 1: 7}, "a dry run changes nothing"
    assert planned_rows(tool(*base, "--execute").out) == expected
    assert offsets(tool, group) == expected


def planned_rows(out: str) -> dict[int, int]:
    """The plan behind the warnings about partitions without such a record."""
    table = out[out.index("\nGROUP ") :]
    return planned(table)


def test_offsets_are_shifted_from_what_is_committed(tool: Tool, gone: tuple[str, str]) -> None:
    group, topic = gone
    base = [GROUPS, "--reset-offsets", "--group", group, "--execute"]
    done = tool(*base, "--topic", f"{topic}:0,1", "--shift-by", "-5")
    assert planned(done.out) == {0: 0, 1: 2}
    assert (
        f"New offset (-1) is lower than earliest offset for topic partition {topic}-0" in done.err
    )
    assert planned(tool(*base, "--all-topics", "--shift-by", "3").out) == {0: 3, 1: 5}
    assert offsets(tool, group) == {0: 3, 1: 5}
    done = tool(*base, "--topic", topic, "--shift-by", "1", code=1)
    assert done.err == (
        f"Cannot shift offset for partition {topic}-2 since there is no current committed offset\n"
    )


def test_without_execute_it_is_a_dry_run_with_a_notice(tool: Tool, gone: tuple[str, str]) -> None:
    group, topic = gone
    words = ["--reset-offsets", "--group", group, "--topic", topic, "--to-earliest"]
    done = tool(GROUPS, *words)
    assert done.err.startswith(
        "WARN: No action will be performed as the --execute option is missing."
    )
    assert planned(done.out) == {0: 0, 1: 0, 2: 0}
    assert offsets(tool, group) == {0: 4, 1: 7}


def test_a_plan_is_exported_and_read_back(
    tool: Tool, gone: tuple[str, str], tmp_path: Path, cluster: Cluster
) -> None:
    group, topic = gone
    words = ["--reset-offsets", "--all-topics", "--to-current", "--export", "--dry-run"]
    done = tool(GROUPS, "--group", group, *words)
    assert done.out == f"{topic},0,4\n{topic},1,7\n\n"
    file = tmp_path / "plan.csv"
    file.write_text(f"{topic},0,2\n{topic},2,99\n")
    base = [GROUPS, "--reset-offsets", "--group", group, "--from-file", file, "--execute"]
    assert planned(tool(*base).out) == {0: 2, 2: 10}
    assert offsets(tool, group) == {0: 2, 1: 7, 2: 10}
    cluster.commit(f"{group}-2", topic, {0: 1})
    both = ["--group", group, "--group", f"{group}-2"]
    done = tool(GROUPS, *both, "--reset-offsets", "--all-topics", "--to-latest", "--export")
    assert done.lines[-2] == f"{group}-2,{topic},0,10"
    file.write_text(done.out)
    tool(GROUPS, *both, "--reset-offsets", "--from-file", file, "--execute")
    assert offsets(tool, f"{group}-2") == {0: 10}


def test_offsets_can_be_set_for_a_group_that_is_yet_to_come(
    tool: Tool, gone: tuple[str, str]
) -> None:
    words = ["--reset-offsets", "--group", "future", "--topic", f"{gone[1]}:1", "--to-offset", "6"]
    tool(GROUPS, *words, "--execute")
    assert offsets(tool, "future") == {1: 6}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_at_work_is_not_reset_nor_deleted(
    tool: Tool, cluster: Cluster, join: Join, protocol: str
) -> None:
    topic = cluster.create(f"active-{protocol}", records=2)
    group = f"active-{protocol}"
    settled((join(RdMember, group, topic, group_protocol=protocol), 1))
    caught_up(tool, group, 1)
    words = ["--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute"]
    done = tool(GROUPS, *words, code=1)
    assert done.err == (
        f"\nError: Assignments can only be reset if the group '{group}' is inactive, but the "
        "current state is Stable.\n"
    )
    done = tool(GROUPS, "--delete", "--group", group, code=1)
    assert done.err.splitlines()[1:] == [
        "Error: Deletion of some consumer groups failed:",
        f"* Group '{group}' could not be deleted due to: The group is not empty.",
    ]
    done = tool(GROUPS, "--delete-offsets", "--group", group, "--topic", topic, code=1)
    assert "is actively subscribed to it" in done.out
    assert offsets(tool, group) == {0: 2}


def test_groups_are_deleted(tool: Tool, cluster: Cluster, gone: tuple[str, str]) -> None:
    group, topic = gone
    cluster.commit("second", topic, {0: 1})
    done = tool(GROUPS, "--delete", "--group", group, "--group", "second")
    assert done.out == (
        f"Deletion of requested consumer groups ('{group}', 'second') was successful.\n"
    )
    assert not {group, "second"} & set(tool(GROUPS, "--list").lines)
    done = tool(GROUPS, "--delete", "--group", group, code=1)
    assert done.err.endswith("could not be deleted due to: The group id does not exist.\n")


def test_offsets_of_topics_are_deleted(tool: Tool, gone: tuple[str, str]) -> None:
    group, topic = gone
    done = tool(GROUPS, "--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    assert done.lines[0] == f"Request succeeded for deleting offsets from group {group}."
    assert rows("\n".join(done.lines[1:])) == [[topic, "0", "Successful"]]
    assert offsets(tool, group) == {1: 7}
    done = tool(GROUPS, "--delete-offsets", "--group", group, "--topic", "nowhere", code=1)
    assert rows(done.out)[0][:3] == ["nowhere", "-", "Error:"]
    done = tool(GROUPS, "--delete-offsets", "--group", "nobody", "--topic", topic, code=1)
    assert done.err == "\nError: The group id does not exist.\n"


@pytest.mark.parametrize("option", ["--zookeeper", "--zoopkeeper"])
def test_old_texts_name_the_cluster_by_zookeeper(
    broker: BrokerProcess, gone: tuple[str, str], option: str
) -> None:
    done = run(GROUPS, "--describe", "--group", gone[0], option, broker.address)
    assert done.code == 0
    assert "--zookeeper is taken as --bootstrap-server" in done.err
    assert rows(done.out)[0][:4] == [gone[0], gone[1], "0", "4"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--topic", "nowhere", "--to-latest"], "Topic 'nowhere' does not exist."),
        (["--topic", "{topic}:9", "--to-latest"], 'The partitions "{topic}-9" do not exist'),
        (["--topic", "{topic}:x", "--to-latest"], "Invalid partition 'x' specified in topic arg"),
        (["--topic", "{topic}", "--to-datetime", "soon"], "Error parsing timestamp 'soon'."),
        (["--topic", "{topic}", "--by-duration", "1h"], "'1h' cannot be parsed to a duration"),
        (["--from-file", "/nowhere/plan.csv"], "Cannot read the reset plan /nowhere/plan.csv"),
    ],
)
def test_what_cannot_be_reset_is_one_sentence(
    tool: Tool, gone: tuple[str, str], words: list[str], sentence: str
) -> None:
    group, topic = gone
    filled = [word.format(topic=topic) for word in words]
    done = tool(GROUPS, "--reset-offsets", "--group", group, "--dry-run", *filled, code=1)
    assert sentence.format(topic=topic) in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert offsets(tool, group) == {0: 4, 1: 7}


def test_no_broker_is_one_sentence() -> None:
    done = run(GROUPS, "--bootstrap-server", "127.0.0.1:1", "--list")
    assert done.code == 1
    assert done.err == (
        "Connection to 127.0.0.1:1 could not be established. Is a broker running there?\n"
    )
