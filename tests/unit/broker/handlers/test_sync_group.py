"""SyncGroup in all versions."""

from typing import Any

import pytest
from tests.unit.broker.handlers.classic_members import joined, sync

from penstock.errors import ErrorCode


@pytest.mark.parametrize("version", range(6))
def test_a_leader_syncs_in_every_version(grouped: Any, version: int) -> None:
    member = joined(grouped)
    told = grouped.ask(sync(member, version), version)
    assert (told.error_code, told.assignment) == (0, b"all")
    if version >= 5:
        assert (told.protocol_type, told.protocol_name) == ("consumer", "range")


def test_from_version_5_on_a_member_that_syncs_names_its_protocol(grouped: Any) -> None:
    member = joined(grouped)
    told = grouped.ask(sync(member, 5, protocol_name=None), 5)
    assert told.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
