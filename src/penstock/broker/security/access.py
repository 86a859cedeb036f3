"""Who may do what in this broker: the rules of the image, asked once per principal and host.

Without an authorizer there is nothing to ask, and nobody asks. With one, each request gets its
`RequestRights`, which remember decisions for all connections of the same principal and host until
the rules change, and tell the audit log what was denied.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Final

from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.net.session import Session
from penstock.security.acls.audit import (
    LOGGER_NAME,
    TRACE,
    AuditedAction,
    AuditWords,
    audit_level,
    audit_line,
)
from penstock.security.acls.decision import Authorizer, PrincipalRights
from penstock.security.acls.index import AclIndex, Entries
from penstock.security.acls.rules import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    ResourcePattern,
)
from penstock.security.principals import Principal, parse_super_users

audit_log = logging.getLogger(LOGGER_NAME)

CLASS_NAMES: Final = tuple(words.value for words in AuditWords)
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
_BOOLEANS: Final = {"true": True, "false": False}
_KNOWN_MAX: Final = 10_000  # Principals and hosts that are remembered at a time.
_LINES_MAX: Final = 10_000
_RELAID_MAX: Final = 100  # Patterns that change at once, above which all is laid out anew.


class AccessControl:
    """The authorizer of a broker; made only where one is configured."""

    def __init__(self, config: BrokerConfig) -> None:
        self._words = AuditWords(config.authorizer_class_name)
        self._authorizer = Authorizer(
            index=AclIndex({}),
            super_users=parse_super_users(config.static.get(SUPER_USERS, "")),
            allow_everyone_if_no_acl_found=_boolean(config, ALLOW_EVERYONE),
        )
        self._acls: Mapping[ResourcePattern, Entries] = {}
        self._known: dict[tuple[str, str], PrincipalRights] = {}
        self._audit = AuditLog(self._words)

    @property
    def index(self) -> AclIndex:
        return self._authorizer.index

    def take_image(self, image: ClusterImage) -> None:
        """Obey the rules of the image; what was decided by others is forgotten."""
        if image.acls is self._acls:
            return
        before, self._acls = self._acls, image.acls
        before_index = self._authorizer.index
        self._authorizer = Authorizer(
            index=_relaid(before_index, before, image.acls),
            super_users=self._authorizer.super_users,
            allow_everyone_if_no_acl_found=self._authorizer.allow_everyone_if_no_acl_found,
        )
        self._known = {}

    def rights_of(self, session: Session, request: str) -> "RequestRights":
        """What the sender of a request may do; `request` is the API's name as Kafka spells it."""
        key = (session.principal, host_of(session.address))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            principal = Principal.parse(key[0])
            found = self._known[key] = self._authorizer.permits(principal, key[1])
        return RequestRights(found, request, self._audit)


class RequestRights:
    """What the sender of one request may do."""

    __slots__ = ("_audit", "_request", "_rights")

    def __init__(self, rights: PrincipalRights, request: str, audit: "AuditLog") -> None:
        self._rights = rights
        self._request = request
        self._audit = audit

    def may(
        self,
        operation: AclOperation,
        kind: AclResourceType,
        name: str = CLUSTER_NAME,
        *,
        quietly: bool = False,  # Whether a denial is no news: another right may do as well.
    ) -> bool:
        is_allowed = self._rights.may(operation, kind, name)
        if not is_allowed or self._audit.wants_allowed:
            self._audit.note(
                self._rights, operation, kind, name, self._request, is_allowed, quietly=quietly
            )
        return is_allowed

    def may_somewhere(self, operation: AclOperation, kind: AclResourceType) -> bool:
        """Whether there can be a resource on which it is allowed."""
        return self._rights.may_somewhere(operation, kind)

    def visible(
        self, operation: AclOperation, kind: AclResourceType, names: Iterable[str]
    ) -> list[str]:
        """Those of the names that the sender may know of."""
        may = self._rights.may
        return [name for name in names if may(operation, kind, name)]

    def authorized_operations(self, kind: AclResourceType, name: str = CLUSTER_NAME) -> int:
        """The bit field that Metadata, DescribeGroups and DescribeCluster show."""
        return self._rights.authorized_operations(kind, name)


class AuditLog:
    """One line for each principal, resource and second; more are counted in the next line."""

    def __init__(self, words: AuditWords) -> None:
        self._words = words
        self._lines: dict[object, tuple[int, int]] = {}  # The second of the last line, and repeats.

    @property
    def wants_allowed(self) -> bool:
        return audit_log.isEnabledFor(logging.DEBUG)

    def note(
        self,
        rights: PrincipalRights,
        operation: AclOperation,
        kind: AclResourceType,
        name: str,
        request: str,
        is_allowed: bool,
        *,
        quietly: bool,
    ) -> None:
        action = AuditedAction(
            principal=rights.principal,
            host=rights.host,
            operation=operation,
            resource=ResourcePattern(kind, name),
            request=request,
            log_if_denied=not quietly,
        )
        level = audit_level(action, is_allowed=is_allowed)
        if level <= TRACE or not audit_log.isEnabledFor(level):
            return
        repeats = self._repeats((rights.principal, rights.host, operation, kind, name, is_allowed))
        if repeats is None:
            return
        decided = rights.authorizer.deciding_rule(
            rights.principal, rights.host, operation, action.resource
        )
        line = audit_line(action, decided, self._words)
        audit_log.log(level, "%s%s", line, f" ({repeats} more like it)" if repeats else "")

    def _repeats(self, key: object) -> int | None:
        """How many were left out since the last line; None: this is one of them."""
        now_s = int(time.monotonic())
        last_s, count = self._lines.get(key, (-1, 0))
        if last_s == now_s:
            self._lines[key] = (last_s, count + 1)
            return None
        if len(self._lines) >= _LINES_MAX:
            self._lines.clear()
        self._lines[key] = (now_s, 0)
        return count


def access_of(config: BrokerConfig) -> AccessControl | None:
    """None: everybody may do everything. ConfigError for a class that is not Kafka's own."""
    name = config.authorizer_class_name
    if not name:
        return None
    if name not in CLASS_NAMES:
        raise ConfigError(
            f"authorizer.class.name is set to {name}, but Java classes cannot be loaded here: "
            f"write {' or '.join(CLASS_NAMES)}"
        )
    return AccessControl(config)


def host_of(address: str) -> str:
    """The address of a peer without its port, in the form rules are written in."""
    host = address.rpartition(":")[0] or address
    return host.removeprefix("::ffff:")


def _boolean(config: BrokerConfig, name: str) -> bool:
    text = config.static.get(name, "false").strip().lower()
    if text not in _BOOLEANS:
        raise ConfigError(f"{name} is {text}: it must be true or false")
    return _BOOLEANS[text]


def _relaid(
    index: AclIndex,
    before: Mapping[ResourcePattern, Entries],
    after: Mapping[ResourcePattern, Entries],
) -> AclIndex:
    changed = [one for one, entries in after.items() if before.get(one) is not entries]
    changed += [one for one in before if one not in after]
    if len(changed) > _RELAID_MAX:
        return AclIndex(after)
    for resource in changed:
        index = index.replaced(resource, after.get(resource, frozenset()))
    return index
