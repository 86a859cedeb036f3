"""The election: Confluent's words, one leader or none, and the same answer for all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.registry.election import (
    DUPLICATE_URLS,
    ForeignMember,
    InstanceIdentity,
    LeaderAssignment,
    decode_identity,
    elect,
)

A = InstanceIdentity(host="a", port=8081)
B = InstanceIdentity(host="b", port=8081)
C = InstanceIdentity(host="c", port=8081)


def told(**members: InstanceIdentity) -> dict[str, bytes]:
    return {name: one.encode() for name, one in members.items()}


def test_a_member_speaks_in_confluents_words() -> None:
    assert json.loads(A.encode()) == {
        "version": 1,
        "host": "a",
        "port": 8081,
        "master_eligibility": True,
        "scheme": "http",
        "leader": False,
    }
    assert json.loads(elect(told(m=A)).encode()) == {
        "version": 1,
        "error": 0,
        "master": "m",
        "master_identity": A.json(),
    }


def test_a_member_of_an_older_registry_is_understood() -> None:
    older = b'{"version":1,"host":"old","port":80,"master_eligibility":false,"further":[1]}'
    found = decode_identity(older)
    assert (found.url, found.is_eligible, found.is_leading) == ("http://old:80", False, False)


def test_the_smallest_id_of_those_that_may_lead_wins() -> None:
    idle = InstanceIdentity(host="idle", port=1, is_eligible=False)
    assert elect(told(m2=B, m1=idle, m3=C)).leader == "m2"


def test_who_leads_stays_unless_two_believe_that_they_do() -> None:
    leading_b = InstanceIdentity(host="b", port=8081, is_leading=True)
    leading_c = InstanceIdentity(host="c", port=8081, is_leading=True)
    assert elect(told(m1=A, m2=leading_b, m3=C)).leader == "m2"
    assert elect(told(m1=A, m2=leading_b, m3=leading_c)).leader == "m1"


def test_nobody_leads_where_nobody_may() -> None:
    idle = InstanceIdentity(host="idle", port=1, is_eligible=False)
    assert elect(told(m=idle)) == LeaderAssignment()
    assert json.loads(elect(told(m=idle)).encode()) == {"version": 1, "error": 0}


def test_two_members_with_one_address_are_an_error() -> None:
    assert elect(told(m1=A, m2=A)) == LeaderAssignment(error=DUPLICATE_URLS)


def test_a_member_that_is_no_registry_is_passed_over() -> None:
    assert elect({"m1": b"\x00\x01topics", "m2": A.encode()}).leader == "m2"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"host":"a"}',
        b'{"host":"a","port":true}',
        b'{"host":"a","port":70000}',
        b'{"host":"","port":1}',
        b'{"host":"a","port":1,"scheme":"file"}',
        b"[" * 100_000,
    ],
)
def test_what_no_registry_says_is_refused(data: bytes) -> None:
    with pytest.raises(ForeignMember):
        decode_identity(data)


def test_an_assignment_without_a_code_is_refused() -> None:
    with pytest.raises(ForeignMember):
        LeaderAssignment.decode(b'{"master":"m"}')


IDENTITIES = st.builds(
    InstanceIdentity,
    host=st.text(min_size=1),
    port=st.integers(1, 65_535),
    scheme=st.sampled_from(["http", "https"]),
    is_eligible=st.booleans(),
    is_leading=st.booleans(),
)


@given(st.dictionaries(st.text(min_size=1), IDENTITIES, min_size=1, max_size=5))
def test_an_election_has_one_eligible_leader_and_goes_round(
    members: dict[str, InstanceIdentity],
) -> None:
    verdict = elect(told(**members))
    assert LeaderAssignment.decode(verdict.encode()) == verdict
    if verdict.leader is None:
        same = len({one.url for one in members.values()}) < len(members)
        assert same or not any(one.is_eligible for one in members.values())
    else:
        assert members[verdict.leader].is_eligible
        assert verdict.identity == members[verdict.leader]
