"""Delegation tokens of a broker alone: made, used, renewed and ended, by us and by Java."""

import re
import subprocess
from pathlib import Path

import pytest
from tests.integration.security.secured_broker import (
    PASSWORD,
    SCRAM,
    TOKEN_KEY,
    SecuredBroker,
)
from tests.support.apache_kafka import CURRENT
from tests.support.outside import needs
from tests.support.waiting import eventually

from penstock.cli.tools.security import delegation_tokens as tool
from penstock.client.admin import Admin
from penstock.client.errors import AuthenticationError
from penstock.client.operations.delegation_tokens import DelegationToken
from penstock.client.operations.topics import NewTopic
from penstock.errors import (
    CommandError,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    UnsupportedByAuthentication,
)
from penstock.security.principals import Principal

JAVA = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
ALICE = Principal("User", "alice")


def admin_of(secured: SecuredBroker, mechanism: str = "SCRAM-SHA-512") -> Admin:
    return Admin(secured.settings("SASL_SSL", mechanism))


def by_token(
    secured: SecuredBroker, token: DelegationToken, mechanism: str = "SCRAM-SHA-256"
) -> dict[str, object]:
    return {
        **secured.settings("SASL_SSL"),
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": token.jaas_config,
    }


@pytest.fixture
def config(secured: SecuredBroker, tmp_path: Path) -> Path:
    """What --command-config names: alice, for Java and for us."""
    quoted = PASSWORD.replace('"', '\\\\"')
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return written(
        tmp_path / "alice.properties",
        {
            **java_tls(secured),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{module} required username="alice" password="{quoted}";',
        },
    )


def java_tls(secured: SecuredBroker) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(secured.ca),
        "default.api.timeout.ms": "240000",
    }


def written(path: Path, settings: dict[str, str]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path


@pytest.mark.parametrize("mechanism", SCRAM)
def test_the_bearer_of_a_token_is_its_owner(secured: SecuredBroker, mechanism: str) -> None:
    with admin_of(secured) as admin:
        token = admin.create_delegation_token(renewers=[Principal("User", "bob")])
        name = f"made-by-token-{mechanism.lower()}"
        with Admin(by_token(secured, token, mechanism)) as bearer:
            bearer.create_topics([NewTopic(name=name)])
            with pytest.raises(UnsupportedByAuthentication):
                bearer.create_delegation_token()
            with pytest.raises(UnsupportedByAuthentication):
                bearer.describe_delegation_tokens()
        assert name in {listing.name for listing in admin.list_topics()}
        assert token in admin.describe_delegation_tokens([ALICE])
        admin.expire_delegation_token(token.hmac)
        assert token not in admin.describe_delegation_tokens()
    with pytest.raises(AuthenticationError):
        Admin(by_token(secured, token, mechanism)).list_topics()


def test_a_token_is_no_user_and_a_wrong_secret_opens_nothing(secured: SecuredBroker) -> None:
    with admin_of(secured) as admin:
        token = admin.create_delegation_token()
    for jaas in (
        token.jaas_config.replace(' tokenauth="true"', ""),
        token.jaas_config.replace(token.secret, "x" + token.secret[1:]),
        token.jaas_config.replace(token.information.token_id, "alice"),
    ):
        with pytest.raises(AuthenticationError, match="invalid credentials"):
            Admin({**by_token(secured, token), "sasl.jaas.config": jaas}).list_topics()


def test_who_proved_nothing_gets_no_token(secured: SecuredBroker) -> None:
    with Admin(secured.settings("PLAINTEXT")) as nobody:
        with pytest.raises(UnsupportedByAuthentication):
            nobody.create_delegation_token()
        with pytest.raises(UnsupportedByAuthentication):
            nobody.renew_delegation_token(b"x")
    with Admin(secured.settings("SSL")) as with_certificate:
        token = with_certificate.create_delegation_token()
        assert token.information.owner == ALICE  # As her certificate says.


def test_only_owner_and_renewers_may_renew(secured: SecuredBroker) -> None:
    bob = Principal("User", "bob")
    with admin_of(secured) as admin:
        token = admin.create_delegation_token(owner=bob)  # There are no rules on this broker.
        assert (token.information.owner, token.information.requester) == (bob, ALICE)
        with pytest.raises(DelegationTokenOwnerMismatch):
            admin.renew_delegation_token(token.hmac)
        with pytest.raises(DelegationTokenNotFound):
            admin.expire_delegation_token(b"nobody's")
        own = admin.create_delegation_token(max_lifetime_ms=60_000)
        ends_ms = admin.renew_delegation_token(own.hmac, period_ms=3_600_000)
        assert ends_ms == own.information.max_ms == own.information.issued_ms + 60_000


def test_what_has_expired_is_removed_and_opens_nothing(secured: SecuredBroker) -> None:
    with admin_of(secured) as admin:
        token = admin.create_delegation_token(max_lifetime_ms=1)
        kept = admin.create_delegation_token()
        eventually(lambda: token not in admin.describe_delegation_tokens())
        assert kept in admin.describe_delegation_tokens()
    with pytest.raises(AuthenticationError):
        Admin(by_token(secured, token)).list_topics()
    assert f"token: {token.information.token_id} for owner: User:alice" in secured.broker.log


def test_tokens_outlive_a_restart_and_secrets_stay_out_of_files(secured: SecuredBroker) -> None:
    with admin_of(secured) as admin:
        token = admin.create_delegation_token()
    secured.broker.stop()
    secured.broker.start()
    with Admin(by_token(secured, token)) as bearer:
        bearer.list_topics()
    kept = [path for path in secured.directory.rglob("*") if path.is_file()]
    texts = (token.secret.encode(), token.hmac, TOKEN_KEY.encode())
    for path in kept:
        if path.name == "server.properties":
            continue
        content = path.read_bytes()
        assert not any(text in content for text in texts), path


# Tools


def ours(
    secured: SecuredBroker, config: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> str:
    where = ["--bootstrap-server", secured.address("SASL_SSL"), "--command-config", str(config)]
    assert tool.main([*where, *words]) == 0
    return capsys.readouterr().out


def theirs(secured: SecuredBroker, config: Path, java_class: str, *words: str) -> str:
    where = ["--bootstrap-server", secured.address("SASL_SSL"), "--command-config", str(config)]
    command = [*JAVA, "-cp", f"{needs(CURRENT)}/*", f"org.apache.kafka.tools.{java_class}"]
    done = subprocess.run([*command, *where, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return "".join(f"{line}\n" for line in done.stdout.splitlines() if "StatusLogger" not in line)


def without_chance(text: str) -> str:
    """Ids, secrets and times are never the same."""
    for pattern, word in (
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d", "DATE"),
        (r"[A-Za-z0-9+/]{86}==", "SECRET"),
        (r"\b[\w-]{22}(?=\s)", "ID"),
    ):
        text = re.sub(pattern, word, text)
    return text


def secret_in(text: str) -> str:
    found = re.search(r"[A-Za-z0-9+/]{86}==", text)
    assert found is not None, text
    return found[0]


def test_the_tool_prints_what_javas_prints(
    secured: SecuredBroker, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with admin_of(secured) as admin:
        for known in admin.describe_delegation_tokens():
            if known.information.owner == ALICE:
                admin.expire_delegation_token(known.hmac)
    create = ["--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"]
    java = "DelegationTokenCommand"
    made, made_by_java = (
        ours(secured, config, capsys, *create),
        theirs(secured, config, java, *create),
    )
    assert without_chance(made) == without_chance(made_by_java)
    of_alice = ["--describe", "--owner-principal", "User:alice"]
    shown, shown_by_java = (
        ours(secured, config, capsys, *of_alice),
        theirs(secured, config, java, *of_alice),
    )
    assert sorted(shown.splitlines()) == sorted(shown_by_java.splitlines())
    words = ["--expire", "--expiry-time-period", "-1", "--hmac"]
    ours(secured, config, capsys, *words, secret_in(made))
    with pytest.raises(CommandError, match="Delegation Token is not found on server"):
        ours(secured, config, capsys, *words, secret_in(made))


def test_javas_clients_come_in_by_a_token(secured: SecuredBroker, tmp_path: Path) -> None:
    with admin_of(secured) as admin:
        token = admin.create_delegation_token()
        admin.create_topics([NewTopic(name="seen-by-java")])
    bearer = {
        **java_tls(secured),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": token.jaas_config,
    }
    listed = theirs(
        secured, written(tmp_path / "token.properties", bearer), "TopicCommand", "--list"
    )
    assert "seen-by-java" in listed.splitlines()
