"""From the names in certificates and tickets to users, as Kafka's documentation shows it."""

from pathlib import Path

import pytest
from tests.support.apache_kafka import CURRENT
from tests.support.java import compiled, run_java
from tests.support.outside import needs

from penstock.errors import ConfigError
from penstock.security.certificate_names import CertificateNames, NoRuleApplies
from penstock.security.kerberos_names import KerberosName, KerberosNames
from penstock.security.principals import Principal, PrincipalUnreadable, parse_super_users

SOURCE = Path(__file__).with_name("Names.java")
DOCUMENTED = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,"
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,"
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,"
    "DEFAULT"
)
SERVICE = "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"
ADMIN = "CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown"
CERTIFICATES = [  # rules, name, user; `!`: nobody
    (DOCUMENTED, SERVICE, "serviceuser"),
    (DOCUMENTED, ADMIN, "adminuser@admin"),
    (DOCUMENTED, "OU=x,cn=Duke.1,O=y", "duke.1"),
    (DOCUMENTED, "OU=JavaSoft", "OU=JavaSoft"),
    ("DEFAULT", SERVICE, SERVICE),
    ("", SERVICE, "!"),
    ("RULE:^CN=(.*?),OU=Service.*$/$1/", ADMIN, "!"),
    ("RULE:^CN=(\\w+),.*$/$1@$4/U", ADMIN, "ADMINUSER@$4"),
    ("RULE:^CN=(\\w+),OU=(\\w+),.*$/$12-$0x/ , DEFAULT", "CN=a,OU=b,", "a2-CN=a,OU=b,x"),
    ("RULE:^CN=(.*?), *OU=(.*?)(,.*)?$/$1\\/$2/U,DEFAULT", "CN=a, OU=b", "A/B"),
    ("RULE:^CN=(\\/?.*?)$/x\\$1/", "CN=/a", "x$1"),
    ("RULE:.*/fixed/L", ADMIN, "fixedfixed"),  # Java finds the empty rest, too.
    ("RULE:^.*$/fixed/L", ADMIN, "fixed"),
    ("RULE:^(?<who>CN=.*)$/${who}!/", "CN=q", "CN=q!"),
    ("RULE:.+/$1/", "CN=q", "!"),
    ("  RULE:^CN=(.*),.*$/$1/L ,  DEFAULT  ", "CN=A,O=B", "a"),
]
REALM = "EXAMPLE.COM"
KERBEROS = [
    (["RULE:[1:$1](App\\..*)s/App\\.(.*)/$1/g", "RULE:[2:$1](App\\..*)s/App\\.(.*)/$1/g"],
     "App.service-name/example.com@EXAMPLE.COM", "service-name"),
    (["RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"], "user@EXAMPLE.COM", "user"),
    (["RULE:[1:$1@$0](.*@OTHER)s/@.*//", "DEFAULT"], "user@OTHER", "user"),
    (["DEFAULT"], "user@OTHER", "!"),
    (["DEFAULT"], "user/host@EXAMPLE.COM", "user"),
    (["DEFAULT"], "user", "user"),
    (["RULE:[1:$1]/L"], "User@ANY", "user"),
    (["RULE:[2:$1](.*)/L", "DEFAULT"], "UsEr/h@ANY", "user"),
    (["RULE:[1:$1@$0]"], "user@ANY", "!"),
    (["RULE:[1:$1]s/a/b/"], "banana@X", "bbnana"),
    (["RULE:[1:$1]s/a/b/g/L"], "BaNana@X", "bbnbnb"),
    (["RULE:[1:$2]"], "user@ANY", "!"),
]  # fmt: skip


def certificate_user(rules: str, name: str) -> str:
    try:
        return CertificateNames.parse(rules).user(name)
    except ConfigError:
        return "!"


def kerberos_user(rules: list[str], name: str) -> str:
    try:
        return KerberosNames.parse(rules, default_realm=REALM).user(KerberosName.parse(name))
    except ConfigError:
        return "!"


@pytest.mark.parametrize(("rules", "name", "user"), CERTIFICATES)
def test_a_certificate_names_a_user(rules: str, name: str, user: str) -> None:
    assert certificate_user(rules, name) == user


@pytest.mark.parametrize(("rules", "name", "user"), KERBEROS)
def test_a_ticket_names_a_user(rules: list[str], name: str, user: str) -> None:
    assert kerberos_user(rules, name) == user


@pytest.mark.kafka
def test_kafka_makes_the_same_of_them(tmp_path: Path) -> None:
    script = tmp_path / "script.tsv"
    lines = [f"ssl\t{rules}\t{name}\n" for rules, name, _ in CERTIFICATES]
    lines += [f"kerberos\t{';;'.join(rules)}\t{REALM}\t{name}\n" for rules, name, _ in KERBEROS]
    script.write_text("".join(lines))
    said = run_java(compiled(SOURCE, needs(CURRENT)), "Names", str(script)).splitlines()
    expected = [user for *_, user in CERTIFICATES] + [user for *_, user in KERBEROS]
    assert said == expected


@pytest.mark.parametrize("rules", ["RULE:x", "NONSENSE", "DEFAULT,RULE:(/x/", "RULE:a/b/X"])
def test_rules_that_cannot_be_read_stop_the_start(rules: str) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.principal\.mapping\.rules"):
        CertificateNames.parse(rules)


@pytest.mark.parametrize("rule", ["RULE:[:$1]", "RULE:[1:$1]s/a/b", "nonsense", "RULE:[1:$1](()"])
def test_rules_for_tickets_that_cannot_be_read_stop_the_start(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.kerberos"):
        KerberosNames.parse([rule], default_realm=REALM)


def test_a_name_without_a_rule_is_nobody() -> None:
    with pytest.raises(NoRuleApplies, match="CN=x"):
        CertificateNames.parse("").user("CN=x")


def test_super_users_are_separated_by_semicolons() -> None:
    users = parse_super_users("User:alice; User:CN=b,OU=c:d ;;Group:ops")
    assert users == {
        Principal("User", "alice"),
        Principal("User", "CN=b,OU=c:d"),
        Principal("Group", "ops"),
    }
    assert parse_super_users("") == frozenset()


@pytest.mark.parametrize("text", ["alice", ""])
def test_a_principal_has_a_type_and_a_name(text: str) -> None:
    with pytest.raises(PrincipalUnreadable):
        Principal.parse(text)


@pytest.mark.parametrize("text", ["User:a:b", "User:", ":alice", ":", "User::"])
def test_a_principal_is_read_as_it_is_printed(text: str) -> None:
    assert str(Principal.parse(text)) == text
