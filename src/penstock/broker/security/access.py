"""Who may do what in this broker: the rules of the image, asked once per principal and host.

Without an authorizer there is nothing to ask, and nobody asks. With one, each request gets its
`RequestRights`, which remember decisions for all connections of the same principal and host until
the rules change, and tell the audit log what was denied.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from penstock.broker.security.audit_log import AuditLog
from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.net.session import Session
from penstock.security.acls.audit import AuditWords
from penstock.security.acls.decision import Authorizer, PrincipalRights
from penstock.security.acls.index import AclIndex, Entries
from penstock.security.acls.rules import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    ResourcePattern,
)
from penstock.security.addresses import java_address
from penstock.security.principals import Principal, parse_super_users

CLASS_NAMES: Final = tuple(words.value for words in AuditWords)
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
_BOOLEANS: Final = {"true": True, "false": False}
_KNOWN_MAX: Final = 10_000  # Principals and hosts that are remembered at a time.
_RELAID_MAX: Final = 100  # Patterns that change at once, above which all is laid out anew.


class AccessControl:
    """The authorizer of a broker; made only where one is configured."""

    def __init__(self, config: BrokerConfig) -> None:
        self._authorizer = Authorizer(
            index=AclIndex({}),
            super_users=parse_super_users(config.static.get(SUPER_USERS, "")),
            allow_everyone_if_no_acl_found=_boolean(config, ALLOW_EVERYONE),
        )
        self._acls: Mapping[ResourcePattern, Entries] = {}
        self._known: dict[tuple[str, str], PrincipalRights] = {}
        self._senders: dict[tuple[str, str, str], RequestRights] = {}  # With the peer's address.
        self.audit = AuditLog(AuditWords(config.authorizer_class_name))

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
        self._senders = {}

    def rights_of(self, session: Session, request: str) -> "RequestRights":
        """What the sender of a request may do; `request` is the API's name as Kafka spells it."""
        sender = (session.principal, session.address, request)
        rights = self._senders.get(sender)
        if rights is None:
            if len(self._senders) >= _KNOWN_MAX:
                self._senders.clear()
            found = self._principal_rights(session.principal, host_of(session.address))
            rights = self._senders[sender] = RequestRights(found, request, self.audit)
        return rights

    def _principal_rights(self, principal: str, host: str) -> PrincipalRights:
        """Connections of one principal and host share what was decided."""
        found = self._known.get((principal, host))
        if found is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            found = self._authorizer.permits(Principal.parse(principal), host)
            self._known[principal, host] = found
        return found


class RequestRights:
    """What the sender of one request may do."""

    __slots__ = ("_audit", "_request", "_rights", "decides")

    def __init__(self, rights: PrincipalRights, request: str, audit: AuditLog) -> None:
        self._rights = rights
        self.decides = rights.may  # The decision alone, of which nobody hears.
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

    def visible_topics(self, names: Iterable[str]) -> list[str]:
        """Those of the topics that the sender may describe."""
        return self.visible(AclOperation.DESCRIBE, AclResourceType.TOPIC, names)

    def authorized_operations(self, kind: AclResourceType, name: str = CLUSTER_NAME) -> int:
        """The bit field that Metadata, DescribeGroups and DescribeCluster show."""
        return self._rights.authorized_operations(kind, name)


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
    return java_address(address.rpartition(":")[0] or address)


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
