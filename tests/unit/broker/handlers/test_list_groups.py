"""ListGroups in all versions, by state and by type."""

from typing import Any

import pytest
from tests.unit.broker.handlers.classic_members import joined

from penstock.protocol.messages.list_groups import ListGroupsRequest


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_in_every_version(grouped: Any, version: int) -> None:
    joined(grouped)
    told = grouped.ask(ListGroupsRequest(), version)
    assert told.error_code == 0
    (group,) = told.groups
    assert (group.group_id, group.protocol_type) == ("g", "consumer")
    if version >= 4:
        assert group.group_state == "CompletingRebalance"
    if version >= 5:
        assert group.group_type == "classic"


def test_groups_are_listed_by_state_and_type(grouped: Any) -> None:
    joined(grouped)

    def listed(states: list[str], types: list[str]) -> list[str]:
        asked = ListGroupsRequest(states_filter=states, types_filter=types)
        return [group.group_id for group in grouped.ask(asked, 5).groups]

    assert listed(["completingrebalance"], []) == ["g"]
    assert listed(["Stable"], []) == []
    assert listed([], ["Classic"]) == ["g"]
    assert listed([], ["share"]) == []
