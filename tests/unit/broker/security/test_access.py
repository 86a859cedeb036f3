"""The authorizer of a broker: settings, rules that change, and its audit log."""

import logging
from dataclasses import replace

import pytest

from penstock.broker.security.access import AccessControl, access_of, host_of
from penstock.cluster.image.image import ClusterImage
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.net.session import Session
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclOperation,
    AclPermission,
    AclResourceType,
    ResourcePattern,
)

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ACL = "kafka.security.authorizer.AclAuthorizer"
READ, TOPIC = AclOperation.READ, AclResourceType.TOPIC
T = ResourcePattern(TOPIC, "t")
ALICE = Session(listener="L", address="10.0.0.1:5", principal="User:alice")


def config(name: str = STANDARD, **more: str) -> BrokerConfig:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return BrokerConfig({"authorizer.class.name": name, **given})


def access(**more: str) -> AccessControl:
    made = access_of(config(**more))
    assert made is not None
    return made


def image(*entries: AccessControlEntry) -> ClusterImage:
    return ClusterImage(cluster_id="c", acls={T: frozenset(entries)} if entries else {})


def allow(principal: str, host: str = "*") -> AccessControlEntry:
    return AccessControlEntry(principal, host, READ, AclPermission.ALLOW)


def may(control: AccessControl, session: Session = ALICE) -> bool:
    return control.rights_of(session, "Fetch").may(READ, TOPIC, "t")


def test_without_a_class_there_is_nothing_to_ask() -> None:
    assert access_of(BrokerConfig({})) is None


def test_a_class_of_somebody_else_is_refused() -> None:
    with pytest.raises(ConfigError, match="Java classes cannot be loaded"):
        access_of(config("com.acme.Authorizer"))
    with pytest.raises(ConfigError, match="must be true or false"):
        access_of(config(allow_everyone_if_no_acl_found="yes"))


@pytest.mark.parametrize("name", [STANDARD, ACL])
def test_rules_hold_from_the_image_that_brings_them(name: str) -> None:
    control = access_of(config(name))
    assert control is not None and not may(control)
    control.take_image(image(allow("User:alice")))
    assert may(control)
    control.take_image(image(allow("User:bob"), allow("User:alice", "10.0.0.1")))
    assert may(control)
    control.take_image(image(allow("User:alice", "10.0.0.2")))
    assert not may(control)
    control.take_image(image())
    assert not may(control)


def test_super_users_and_the_default_for_what_has_no_rules() -> None:
    assert may(access(super_users="User:CN=x,O=y;User:alice"))
    control = access(allow_everyone_if_no_acl_found="true")
    assert may(control)
    control.take_image(image(allow("User:bob")))
    assert not may(control)


def test_many_rules_at_once_are_laid_out_anew() -> None:
    control = access()
    acls = {
        ResourcePattern(TOPIC, f"t{number}"): frozenset({allow("User:alice")})
        for number in range(300)
    }
    control.take_image(replace(image(), acls=acls))
    rights = control.rights_of(ALICE, "Metadata")
    assert rights.visible(AclOperation.DESCRIBE, TOPIC, ["t1", "x", "t299"]) == ["t1", "t299"]


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.1:99", "10.0.0.1"),
        ("::1:99", "0:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1:99", "10.0.0.1"),
    ],
)
def test_a_host_is_an_address_without_its_port(address: str, host: str) -> None:
    assert host_of(address) == host


@pytest.mark.parametrize("host", ["0:0:0:0:0:0:0:1", "::1", "0:0::1"])
def test_an_address_of_ipv6_is_known_as_java_prints_it_and_in_any_spelling(host: str) -> None:
    local = Session(listener="L", address="::1:5", principal="User:alice")
    control = access()
    control.take_image(image(allow("User:alice", host)))
    assert may(control, local) and not may(control)
    deny = AccessControlEntry("User:alice", host, AclOperation.ALL, AclPermission.DENY)
    control.take_image(image(allow("User:alice"), deny))
    assert may(control) and not may(control, local)
    rights = control.rights_of(local, "InitProducerId")
    control.take_image(image(allow("User:alice", host)))
    assert not rights.may_somewhere(READ, TOPIC)
    assert control.rights_of(local, "InitProducerId").may_somewhere(READ, TOPIC)


def test_a_denial_is_written_down_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    control = access()
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        rights = control.rights_of(ALICE, "Fetch")
        for _ in range(50):
            rights.may(READ, TOPIC, "t")
        rights.may(READ, TOPIC, "quiet", quietly=True)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) <= 3  # The clock may go on meanwhile.
    assert lines[0] == (
        "Principal = User:alice is Denied operation = READ from host = 10.0.0.1 on resource = "
        "Topic:LITERAL:t for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny"
    )
    with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        control.take_image(image(allow("User:alice")))
        assert may(control)
    assert "is Allowed operation = READ" in caplog.text
