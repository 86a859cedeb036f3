"""`schema-registry-stop`: which processes it means."""

import pytest

from penstock.cli.main import tool_named
from penstock.cli.tools.servers.registry_stop import is_registry


def test_it_is_found_by_its_names() -> None:
    found = {tool_named(name) for name in ("schema-registry-stop", "schema-registry-stop.sh")}
    assert {tool.place for tool in found if tool} == {"servers.registry_stop"}


@pytest.mark.parametrize(
    "line",
    [
        "python -m penstock.cli.main registry file",
        "/usr/bin/python3 /opt/bin/penstock registry file --override a=b",
        "python /opt/bin/schema-registry-start.sh file",
        "python /src/penstock/cli/main.py schema-registry-start file",
    ],
)
def test_a_registry_is_known_by_its_command_line(line: str) -> None:
    assert is_registry(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "python -m penstock.cli.main",
        "python -m penstock.cli.main server registry",
        "vim registry",
        "python -m penstock.cli.main registry-stop",
        "python /opt/bin/schema-registry-stop",
    ],
)
def test_others_are_left_alone(line: str) -> None:
    assert not is_registry(line.split())
