"""The line of Java's Krb5LoginModule, as people write it."""

import sys

import pytest

from penstock.errors import ConfigError
from penstock.security.sasl.kerberos_login import KerberosLogin, kerberos_login_of, library

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
KEYS = 'useKeyTab=true storeKey=true keyTab="/k.keytab" principal="kafka/h@R"'


def test_a_keytab_gets_tickets_that_stay_in_memory() -> None:
    login = kerberos_login_of(f"{MODULE} {KEYS};", service="kafka")
    assert login == KerberosLogin(service="kafka", principal="kafka/h@R", keytab="/k.keytab")
    assert login.store == {
        "client_keytab": "/k.keytab",
        "ccache": "MEMORY:penstock-kafka/h@R",
    }


@pytest.mark.parametrize(
    ("options", "store"),
    [
        ("useTicketCache=true", {}),
        ('useTicketCache=true ticketCache="/t"', {"ccache": "/t"}),
        (f"useTicketCache=true {KEYS}", {"client_keytab": "/k.keytab"}),
    ],
)
def test_tickets_that_are_there_are_taken(options: str, store: dict[str, str]) -> None:
    assert kerberos_login_of(f"{MODULE} {options};", service="kafka").store == store


@pytest.mark.parametrize(
    ("options", "service", "words"),
    [
        ("", "kafka", "useKeyTab=true with keyTab and principal, or useTicketCache"),
        ('username="a" password="b"', "kafka", "nobody can be asked for a password"),
        ("useKeyTab=true principal=a", "kafka", "needs keyTab"),
        ("useKeyTab=true keyTab=a", "kafka", "needs principal"),
        (KEYS, None, "No serviceName defined in either JAAS or Kafka config"),
        (f"{KEYS} serviceName=other", "kafka", "Conflicting serviceName values"),
    ],
)
def test_a_line_that_says_too_little_is_refused(
    options: str, service: str | None, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        kerberos_login_of(f"{MODULE} {options};", service=service)


def test_the_service_may_stand_in_the_line() -> None:
    for service in (None, "kafka"):
        found = kerberos_login_of(f"{MODULE} {KEYS} serviceName=kafka;", service=service)
        assert found.service == "kafka"


def test_without_the_library_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r'pip install "penstock\[kerberos\]"'):
        library()
