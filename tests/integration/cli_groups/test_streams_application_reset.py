"""kafka-streams-application-reset: an application begins again."""

from pathlib import Path

import pytest
from tests.integration.cli.conftest import Tool
from tests.integration.cli_groups.conftest import Cluster, Join, RdMember, settled

RESET = "streams-application-reset"


@pytest.fixture
def app(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """An application that has read a part of its input and made topics for itself."""
    name = f"app{abs(hash(request.node.name)) % 10**8}"
    for topic in ("input", "between"):
        cluster.create(f"{name}-{topic}", records=10)
        cluster.commit(name, f"{name}-{topic}", {0: 4})
    for topic in ("store-changelog", "key-repartition", "output"):
        cluster.create(f"{name}-{topic}")
    return name


def offsets(tool: Tool, group: str) -> dict[str, int]:
    lines = tool("consumer-groups", "--describe", "--group", group).lines[2:]
    return {line.split()[1].removeprefix(f"{group}-"): int(line.split()[3]) for line in lines}


def topics(tool: Tool, app: str) -> set[str]:
    lines = tool("topics", "--list").lines
    return {line.removeprefix(f"{app}-") for line in lines if line.startswith(f"{app}-")}


def test_a_dry_run_tells_all_and_does_nothing(tool: Tool, app: str) -> None:
    words = ["--application-id", app, "--input-topics", f"{app}-input", "--dry-run"]
    assert tool(RESET, *words).lines == [
        "----Dry run displays the actions which will be performed when running Streams Reset "
        "Tool----",
        f"Reset-offsets for input topics [{app}-input]",
        f"Following input topics offsets will be reset to (for consumer group {app})",
        f"Topic: {app}-input Partition: 0 Offset: 0",
        "Done.",
        f"Deleting inferred internal topics [{app}-key-repartition, {app}-store-changelog]",
        "Done.",
    ]
    assert offsets(tool, app) == {"input": 4, "between": 4}
    assert "store-changelog" in topics(tool, app)


def test_offsets_go_back_and_the_applications_topics_go(tool: Tool, app: str) -> None:
    words = ["--input-topics", f"{app}-input", "--intermediate-topics", f"{app}-between"]
    done = tool(RESET, "--application-id", app, *words)
    assert "`--intermediate-topics` is deprecated" in done.err
    assert offsets(tool, app) == {"input": 0, "between": 10}
    assert topics(tool, app) == {"input", "between", "output"}


@pytest.mark.parametrize(
    ("words", "offset"),
    [
        (["--to-latest"], 10),
        (["--to-offset", "7"], 7),
        (["--to-offset", "70"], 10),
        (["--shift-by", "-3"], 1),
        (["--to-datetime", "1970-01-01T00:00:05.500"], 5),
        (["--by-duration", "PT1S"], 10),
    ],
)
def test_input_is_read_again_from_where_the_options_say(
    tool: Tool, app: str, words: list[str], offset: int
) -> None:
    tool(RESET, "--application-id", app, "--input-topics", f"{app}-input", *words)
    assert offsets(tool, app)["input"] == offset


def test_input_is_read_again_from_a_file(tool: Tool, app: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(f"{app}-input,0,6\n")
    base = ["--application-id", app, "--input-topics", f"{app}-input", "--from-file", file]
    tool(RESET, *base)
    assert offsets(tool, app)["input"] == 6
    file.write_text(f"{app}-input,1,6\n")
    done = tool(RESET, *base, code=1)
    assert done.err == f"The reset plan {file} has no offset for {app}-input-0.\n"


def test_only_some_internal_topics_are_deleted_when_named(tool: Tool, app: str) -> None:
    base = ["--application-id", app, "--internal-topics"]
    assert tool(RESET, *base, f"{app}-output", code=1).err.startswith("Invalid topic specified")
    done = tool(RESET, *base, f"{app}-store-changelog")
    assert done.lines[0] == "No input or intermediate topics specified. Skipping seek."
    assert topics(tool, app) == {"input", "between", "output", "key-repartition"}


def test_a_missing_input_topic_is_told_and_the_rest_done(tool: Tool, app: str) -> None:
    words = ["--input-topics", f"nowhere,{app}-input"]
    done = tool(RESET, "--application-id", app, *words, code=1)
    assert "Following input topics are not found, skipping them\nTopic: nowhere\n" in done.out
    assert offsets(tool, app)["input"] == 0


def test_a_running_application_is_left_alone_unless_forced(
    tool: Tool, app: str, join: Join
) -> None:
    member = join(RdMember, app, f"{app}-input", client_id="worker")
    settled((member, 1))
    words = ["--application-id", app, "--input-topics", f"{app}-input"]
    done = tool(RESET, *words, code=1)
    assert done.err.startswith(f"ERROR: Consumer group '{app}' is still active")
    assert "worker at /127.0.0.1" in done.err and "'--force'" in done.err
    member.close()
    tool(RESET, *words)


def test_force_removes_members_that_were_left_behind(
    tool: Tool, app: str, join: Join, cluster: Cluster
) -> None:
    # A static member that closes stays in the group until its session is over.
    member = join(RdMember, app, f"{app}-input", group_instance_id="left-behind")
    settled((member, 1))
    member.close()
    words = ["--application-id", app, "--input-topics", f"{app}-input"]
    done = tool(RESET, *words, "--force")
    assert done.lines[0] == f"Force deleting all active members in the group: {app}"
    assert offsets(tool, app)["input"] == 0
