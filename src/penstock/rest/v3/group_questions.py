"""Consumer groups as the cluster knows them: from a list, with the details of each."""

from collections.abc import Collection
from dataclasses import dataclass

from penstock.client.admin import Admin
from penstock.client.operations.groups import GroupDescription, MemberDescription
from penstock.errors import ErrorCode, ProtocolError

_GONE = "Dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGroup:
    """A consumer group; `is_simple`: somebody only commits offsets to it."""

    group_id: str
    is_simple: bool
    assignor: str
    state: str
    type: str
    coordinator_id: int
    members: tuple[MemberDescription, ...]


def find_groups(admin: Admin) -> list[FoundGroup]:
    """All consumer groups; one that ends meanwhile is left out."""
    simple = {one.group_id: not one.protocol for one in admin.list_consumer_groups()}
    described = admin.describe_consumer_groups(simple)
    return [
        _found(one, {group_id for group_id, is_simple in simple.items() if is_simple})
        for _, one in sorted(described.items())
        if isinstance(one, GroupDescription) and one.state != _GONE
    ]


def find_group(admin: Admin, group_id: str) -> FoundGroup | None:
    """One group; None: there is none of that name."""
    found = admin.describe_consumer_groups([group_id])[group_id]
    if isinstance(found, ProtocolError):
        if found.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise found
    if found.state == _GONE:
        return None
    listed = [] if found.members else admin.list_consumer_groups()
    return _found(found, {one.group_id for one in listed if not one.protocol})


def _found(group: GroupDescription, simple: Collection[str]) -> FoundGroup:
    return FoundGroup(
        group_id=group.group_id,
        is_simple=group.group_id in simple,
        assignor=group.assignor,
        state=group.state,
        type=group.type,
        coordinator_id=group.coordinator.id,
        members=group.members,
    )
