"""The words of the audit log, and how loudly they are said."""

import logging
from dataclasses import replace

from penstock.security.acls.audit import TRACE, AuditedAction, AuditWords, audit_level, audit_line
from penstock.security.acls.decision import DecidingRule
from penstock.security.acls.rules import (
    AclOperation,
    AclResourceType,
    ResourcePattern,
)
from penstock.security.principals import Principal

TOPIC = AclResourceType.TOPIC

ACTION = AuditedAction(
    principal=Principal("User", "alice"),
    host="10.0.0.1",
    operation=AclOperation.READ,
    resource=ResourcePattern(TOPIC, "orders"),
    request="Fetch",
)


def test_a_line_is_in_the_words_of_the_authorizer_it_stands_for() -> None:
    denied = DecidingRule(is_allowed=False)
    assert audit_line(ACTION, denied) == (
        "Principal = User:alice is Denied operation = READ from host = 10.0.0.1 on resource = "
        "Topic:LITERAL:orders for request = Fetch with resourceRefCount = 1 "
        "based on rule DefaultDeny"
    )
    assert audit_line(ACTION, denied, AuditWords.ACL_AUTHORIZER) == (
        "Principal = User:alice is Denied Operation = Read from host = 10.0.0.1 on resource = "
        "Topic:LITERAL:orders for request = Fetch with resourceRefCount = 1"
    )


def test_nobody_writes_lines_of_their_own_into_the_log() -> None:
    action = replace(ACTION, resource=ResourcePattern(TOPIC, "a\nPrincipal = User:root is Allowed"))
    assert "\n" not in audit_line(action, DecidingRule(is_allowed=False))


def test_what_only_filters_is_told_most_quietly() -> None:
    assert audit_level(ACTION, is_allowed=False) == logging.INFO
    assert audit_level(ACTION, is_allowed=True) == logging.DEBUG
    quiet = replace(ACTION, log_if_allowed=False, log_if_denied=False)
    assert {audit_level(quiet, is_allowed=one) for one in (True, False)} == {TRACE}
