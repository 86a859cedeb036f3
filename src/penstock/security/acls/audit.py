"""The audit log: one line for each decision, in the words of the authorizer it stands for.

What was asked for and denied is INFO, what was allowed is DEBUG. A decision that only filters a
list or fills a bit field grants nothing, and is TRACE, which Python's logging calls 5.
"""

import logging
from dataclasses import dataclass
from enum import Enum

from penstock.security.acls.decision import DecidingRule
from penstock.security.acls.rules import AclBinding, AclOperation, ResourcePattern, word_of
from penstock.security.principals import Principal

LOGGER_NAME = "kafka.authorizer.logger"
TRACE = 5


class AuditWords(Enum):
    """Whose words; by authorizer.class.name."""

    STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    ACL_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedAction:
    """What was asked, by whom, through which request."""

    principal: Principal
    host: str
    operation: AclOperation
    resource: ResourcePattern
    request: str  # The API as Kafka names it: Fetch.
    resource_count: int = 1  # How often the request names the resource.
    log_if_allowed: bool = True
    log_if_denied: bool = True


def audit_level(action: AuditedAction, *, is_allowed: bool) -> int:
    """The level of the line."""
    if is_allowed:
        return logging.DEBUG if action.log_if_allowed else TRACE
    return logging.INFO if action.log_if_denied else TRACE


def audit_line(
    action: AuditedAction,
    decided: DecidingRule,
    words: AuditWords = AuditWords.STANDARD_AUTHORIZER,
) -> str:
    """The line; line breaks in names are escaped, so that nobody writes lines of their own."""
    verdict = "Allowed" if decided.is_allowed else "Denied"
    is_standard = words is AuditWords.STANDARD_AUTHORIZER
    operation = (
        f"operation = {action.operation.name}"
        if is_standard
        else f"Operation = {word_of(action.operation)}"
    )
    kind = word_of(action.resource.type)
    resource = f"{kind}:{action.resource.pattern.name}:{action.resource.name}"
    line = (
        f"Principal = {action.principal} is {verdict} {operation} from host = {action.host} "
        f"on resource = {resource} for request = {action.request} "
        f"with resourceRefCount = {action.resource_count}"
    )
    if is_standard:
        line += f" based on rule {_reason(decided)}"
    return line.replace("\r", "\\r").replace("\n", "\\n")


def _reason(decided: DecidingRule) -> str:
    if decided.is_super_user:
        return "SuperUser"
    if decided.rule is None:
        return "DefaultAllow" if decided.is_allowed else "DefaultDeny"
    return f"MatchingAcl(acl={_as_kafka_prints(decided.rule)})"


def _as_kafka_prints(rule: AclBinding) -> str:
    resource, entry = rule.resource, rule.entry
    return (
        f"StandardAcl[resourceType={resource.type.name}, resourceName={resource.name}, "
        f"patternType={resource.pattern.name}, principal={entry.principal}, host={entry.host}, "
        f"operation={entry.operation.name}, permissionType={entry.permission.name}]"
    )
