"""Rules and filters as the requests about them carry them: numbers in, values out."""

from enum import IntEnum
from typing import Any, TypeVar

from penstock.errors import InvalidRequest
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    EntryFilter,
    PatternType,
    ResourceFilter,
    ResourcePattern,
)

E = TypeVar("E", bound=IntEnum)


def binding_of(creation: Any) -> AclBinding:
    """The rule that CreateAcls is to add."""
    return AclBinding(
        ResourcePattern(
            _value(AclResourceType, creation.resource_type),
            creation.resource_name,
            _value(PatternType, creation.resource_pattern_type),
        ),
        AccessControlEntry(
            creation.principal,
            creation.host,
            _value(AclOperation, creation.operation),
            _value(AclPermission, creation.permission_type),
        ),
    )


def filter_of(asked: Any) -> AclBindingFilter:
    """The rules that DescribeAcls or DeleteAcls mean; InvalidRequest for what is not known."""
    wanted = AclBindingFilter(
        resource=ResourceFilter(
            type=_value(AclResourceType, asked.resource_type_filter),
            name=asked.resource_name_filter,
            pattern=_value(PatternType, asked.pattern_type_filter),
        ),
        entry=EntryFilter(
            principal=asked.principal_filter,
            host=asked.host_filter,
            operation=_value(AclOperation, asked.operation),
            permission=_value(AclPermission, asked.permission_type),
        ),
    )
    try:
        wanted.check()
    except InvalidRequest:
        raise InvalidRequest("The AclBindingFilter must not contain UNKNOWN elements.") from None
    return wanted


def _value(kind: type[E], number: int) -> E:
    """Numbers from the future are UNKNOWN, which is 0 in all of these."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)
