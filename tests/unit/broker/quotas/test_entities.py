"""Who has a quota, how that is stored, and whose quota counts."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.broker.quotas.entities import (
    QuotaClaim,
    Scope,
    canonical_address,
    claim,
    config_key,
    entity_from,
    entity_of,
)
from penstock.cluster.image.image import ConfigKey
from penstock.errors import InvalidRequest

names = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
entities = st.one_of(
    st.fixed_dictionaries({"user": names}),
    st.fixed_dictionaries({"client-id": names}),
    st.fixed_dictionaries({"user": names, "client-id": names}),
    st.fixed_dictionaries({"ip": st.one_of(st.none(), st.ip_addresses().map(str))}),
)


@given(entities)
def test_every_entity_has_a_place_of_its_own(entity: dict[str, str | None]) -> None:
    assert entity_of(config_key(entity)) == entity


@pytest.mark.parametrize(
    ("entity", "key"),
    [
        ({"user": "alice"}, ("users", "alice")),
        ({"user": None}, ("users", "<default>")),
        ({"user": "<default>"}, ("users", "%3Cdefault%3E")),
        ({"client-id": "an app"}, ("clients", "an%20app")),
        ({"client-id": None}, ("clients", "<default>")),
        ({"user": "a/clients/b"}, ("users", "a%2Fclients%2Fb")),
        ({"user": "alice", "client-id": "c/1"}, ("users", "alice/clients/c%2F1")),
        ({"user": None, "client-id": "c"}, ("users", "<default>/clients/c")),
        ({"user": "alice", "client-id": None}, ("users", "alice/clients/<default>")),
        ({"ip": "10.0.0.1"}, ("ips", "10.0.0.1")),
        ({"ip": None}, ("ips", "<default>")),
    ],
)
def test_entities_are_stored_where_kafka_stores_them(
    entity: dict[str, str | None], key: ConfigKey
) -> None:
    assert config_key(entity) == key
    assert entity_of(key) == entity


def test_settings_of_topics_are_nobodys_quotas() -> None:
    assert entity_of(("topics", "t")) is None
    assert entity_of(("brokers", "<default>")) is None


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([], "Invalid quota entity types none."),
        ([("group", "g")], "Invalid quota entity types group."),
        ([("ip", "10.0.0.1"), ("user", "a")], "Invalid quota entity types ip, user."),
        ([("user", "")], "Empty user not supported"),
        ([("user", "a"), ("user", "b")], "The entity type user is given twice."),
        ([("ip", "localhost")], "localhost is not a valid IP address."),
    ],
)
def test_what_cannot_have_quotas_is_refused(
    parts: list[tuple[str, str | None]], sentence: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        entity_from(parts)
    assert str(caught.value) == sentence


def test_addresses_have_one_spelling() -> None:
    assert canonical_address("::FFFF:10.0.0.1") == "10.0.0.1"
    assert canonical_address("2001:DB8:0:0:0:0:0:1") == "2001:db8::1"
    assert canonical_address("10.0.0") is None


# Kafka's order, most special first, and who shares the meter then.
LEVELS: list[tuple[ConfigKey, Scope]] = [
    (("users", "alice/clients/c"), Scope("alice", "c")),
    (("users", "alice/clients/<default>"), Scope("alice", "c")),
    (("users", "alice"), Scope("alice", "")),
    (("users", "<default>/clients/c"), Scope("alice", "c")),
    (("users", "<default>/clients/<default>"), Scope("alice", "c")),
    (("users", "<default>"), Scope("alice", "")),
    (("clients", "c"), Scope("", "c")),
    (("clients", "<default>"), Scope("", "c")),
]


@pytest.mark.parametrize("chosen", list(itertools.product([False, True], repeat=8)))
def test_the_most_special_of_eight_levels_counts(chosen: tuple[bool, ...]) -> None:
    limits = {key: float(at) for at, (key, _) in enumerate(LEVELS) if chosen[at]}
    first = next((at for at, is_set in enumerate(chosen) if is_set), None)
    expected = None if first is None else QuotaClaim(float(first), LEVELS[first][1])
    assert claim(limits, "alice", "c") == expected


def test_quotas_of_others_do_not_count() -> None:
    limits = {
        ("users", "bob"): 1.0,
        ("users", "bob/clients/<default>"): 1.0,
        ("users", "<default>/clients/d"): 1.0,
        ("clients", "d"): 1.0,
    }
    assert claim(limits, "alice", "c") is None


def test_a_client_with_a_strange_name_is_found() -> None:
    limits = {("users", "CN%3Da%2CO%3Db/clients/c%2F1"): 5.0}
    assert claim(limits, "CN=a,O=b", "c/1") == QuotaClaim(5.0, Scope("CN=a,O=b", "c/1"))


def test_nobody_becomes_the_default_by_calling_himself_so() -> None:
    limits = {("users", "<default>/clients/c"): 1.0, ("users", "%3Cdefault%3E"): 2.0}
    assert claim(limits, "<default>", "d") == QuotaClaim(2.0, Scope("<default>", ""))
