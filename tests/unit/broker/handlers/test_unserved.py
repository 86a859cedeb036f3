"""Clients of share and streams groups get an error they understand."""

from typing import Any

import pytest

from penstock.broker.dispatch import REFUSED, served_versions
from penstock.errors import ErrorCode
from penstock.protocol.apis import ApiKey, request_class, supported_versions
from penstock.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)

UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION


def test_they_are_not_announced() -> None:
    assert set(REFUSED).isdisjoint(served_versions())


@pytest.mark.parametrize("key", REFUSED)
def test_each_is_refused_in_each_version(served: Any, key: ApiKey) -> None:
    request = request_class(key)()
    if hasattr(request, "group_ids"):
        request.group_ids = ["a", "b"]
    if key is ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS:
        named = [DescribeShareGroupOffsetsRequestGroup(group_id=name) for name in ("a", "b")]
        request = DescribeShareGroupOffsetsRequest(groups=named)
    kind = "streams" if "STREAMS" in key.name else "share"
    for version in supported_versions(key):
        answer = served.ask(request, version)
        parts = [answer] if hasattr(answer, "error_code") else answer.groups
        assert {part.error_code for part in parts} == {UNSUPPORTED}
        assert f"does not support {kind} groups" in parts[0].error_message
        if parts[0] is not answer:
            assert [group.group_id for group in parts] == ["a", "b"]
