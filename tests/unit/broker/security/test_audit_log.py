"""The audit: repeats are counted, floods are cut, and a topic gets what the log gets."""

import logging
from dataclasses import dataclass, field

import pytest

from penstock.broker.security.audit_log import AuditLog
from penstock.security.acls.audit import AuditedAction, AuditWords
from penstock.security.acls.decision import Authorizer, PrincipalRights
from penstock.security.acls.index import AclIndex
from penstock.security.acls.rules import AclOperation, AclResourceType
from penstock.security.principals import Principal

READ, TOPIC = AclOperation.READ, AclResourceType.TOPIC
LOGGER = "kafka.authorizer.logger"


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Kept:
    with_allowed: bool = False
    records: list[tuple[str, bool, int]] = field(default_factory=list)

    def add(self, action: AuditedAction, *, is_allowed: bool, repeats: int) -> None:
        self.records.append((action.resource.name, is_allowed, repeats))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def audit(clock: Clock, caplog: pytest.LogCaptureFixture) -> AuditLog:
    caplog.set_level(logging.INFO, LOGGER)
    return AuditLog(AuditWords.STANDARD_AUTHORIZER, now_s=clock)


def rights() -> PrincipalRights:
    nobody = Authorizer(
        index=AclIndex({}), super_users=frozenset(), allow_everyone_if_no_acl_found=False
    )
    return nobody.permits(Principal.parse("User:mallory"), "10.0.0.9")


def note(audit: AuditLog, name: str, *, is_allowed: bool = False, quietly: bool = False) -> None:
    audit.note(rights(), READ, TOPIC, name, "Fetch", is_allowed, quietly=quietly)


def test_repeats_within_a_second_are_counted_in_the_next_line(
    audit: AuditLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        note(audit, "t")
    clock.now_s += 1
    note(audit, "t")
    line = (
        "Principal = User:mallory is Denied operation = READ from host = 10.0.0.9 on resource = "
        "Topic:LITERAL:t for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny"
    )
    assert caplog.messages == [line, f"{line} (4 more like it)"]


def test_a_flood_of_names_is_cut_and_told(
    audit: AuditLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5_000):
        note(audit, f"t{number}")
    assert len(caplog.messages) == 1_000
    clock.now_s += 1
    note(audit, "later")
    assert caplog.messages[1_000].startswith("4000 decisions were left out")
    assert "Topic:LITERAL:later" in caplog.messages[1_001]


def test_records_are_kept_of_denials_and_on_demand_of_the_rest(audit: AuditLog) -> None:
    audit.records = kept = Kept()
    note(audit, "denied")
    note(audit, "denied")
    note(audit, "quiet", quietly=True)
    note(audit, "allowed", is_allowed=True)
    assert (kept.records, audit.wants_allowed) == ([("denied", False, 0)], False)
    kept.with_allowed = True
    note(audit, "allowed", is_allowed=True)
    assert kept.records[1:] == [("allowed", True, 0)]
    assert audit.wants_allowed


def test_records_are_kept_also_while_the_logger_is_silent(
    audit: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, LOGGER)
    audit.records = kept = Kept()
    note(audit, "denied")
    assert (len(kept.records), caplog.messages) == (1, [])
