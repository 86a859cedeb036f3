"""The audit of a broker: what was denied, and for who wants it what was allowed.

Lines go to Kafka's logger, in its words. Where a topic is named they become records as well
(broker/security/audit_topic.py). One line for each principal, resource and second, and so many
lines a second in all: who asks for a million names must not keep others waiting. What is left out
is counted.
"""

import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

from penstock.security.acls.audit import (
    LOGGER_NAME,
    TRACE,
    AuditedAction,
    AuditWords,
    audit_level,
    audit_line,
)
from penstock.security.acls.decision import PrincipalRights
from penstock.security.acls.rules import AclOperation, AclResourceType, ResourcePattern

audit_log = logging.getLogger(LOGGER_NAME)

_KNOWN_MAX: Final = 10_000  # Decisions whose repeats are counted at a time.
_LINES_PER_S: Final = 1_000


class AuditRecords(Protocol):
    """Where decisions go beside the log."""

    with_allowed: bool

    def add(self, action: AuditedAction, *, is_allowed: bool, repeats: int) -> None:
        """Take one; returns at once, whatever becomes of it."""
        ...


class AuditLog:
    """One line for each principal, resource and second; more are counted in the next line."""

    def __init__(self, words: AuditWords, now_s: Callable[[], float] = time.monotonic) -> None:
        self._words = words
        self._now_s = now_s
        self._known: dict[object, tuple[int, int]] = {}  # The second of the last one, and repeats.
        self._second = -1
        self._told = 0  # In this second.
        self._omitted = 0  # Since the last line about that.
        self.records: AuditRecords | None = None  # None: there is no topic.

    @property
    def wants_allowed(self) -> bool:
        if self.records is not None and self.records.with_allowed:
            return True
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
        is_logged = level > TRACE and audit_log.isEnabledFor(level)
        records = self._records_for(level, is_allowed)
        if not is_logged and records is None:
            return
        key = (rights.principal, rights.host, operation, kind, name, is_allowed)
        repeats = self._repeats(key)
        if repeats is None:
            return
        if records is not None:
            records.add(action, is_allowed=is_allowed, repeats=repeats)
        if is_logged:
            self._log(rights, action, level, repeats)

    def _records_for(self, level: int, is_allowed: bool) -> AuditRecords | None:
        if self.records is None or level <= TRACE or (is_allowed and not self.records.with_allowed):
            return None
        return self.records

    def _log(
        self, rights: PrincipalRights, action: AuditedAction, level: int, repeats: int
    ) -> None:
        decided = rights.authorizer.deciding_rule(
            rights.principal, rights.host, action.operation, action.resource
        )
        line = audit_line(action, decided, self._words)
        audit_log.log(level, "%s%s", line, f" ({repeats} more like it)" if repeats else "")

    def _repeats(self, key: object) -> int | None:
        """How many were left out since the last one; None: this is left out as well."""
        now_s = int(self._now_s())
        last_s, count = self._known.get(key, (-1, 0))
        if last_s == now_s:
            self._known[key] = (last_s, count + 1)
            return None
        if not self._has_room(now_s):
            self._omitted += 1
            return None
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[key] = (now_s, 0)
        return count

    def _has_room(self, now_s: int) -> bool:
        if now_s != self._second:
            self._second, self._told = now_s, 0
            if self._omitted:
                audit_log.warning(
                    "%d decisions were left out: at most %d are told in a second",
                    self._omitted,
                    _LINES_PER_S,
                )
                self._omitted = 0
        self._told += 1
        return self._told <= _LINES_PER_S
