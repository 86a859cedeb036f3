"""Access rules as parameters, bodies and documents."""

from typing import Any

import pytest

from penstock.http.errors import HttpError
from penstock.rest.v3.acls import new_rule, rule_document, rule_filter
from penstock.rest.v3.links import Links
from penstock.security.acls.rules import AclBindingFilter, AclOperation, AclResourceType

RULE = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "PREFIXED",
    "principal": "User:alice",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


def test_a_rule_is_told_as_it_was_given_and_found_by_its_address() -> None:
    document = rule_document(Links(base="http://x", cluster_id="c"), new_rule(RULE))
    assert {name: document[name] for name in RULE} == RULE
    assert document["metadata"]["self"] == (
        "http://x/v3/clusters/c/acls?resource_type=TOPIC&resource_name=orders"
        "&pattern_type=PREFIXED&principal=User%3Aalice&host=%2A&operation=READ&permission=ALLOW"
    )
    assert rule_filter(RULE).matches(new_rule(RULE))


def test_a_search_without_words_finds_everything() -> None:
    assert rule_filter({}) == AclBindingFilter()
    found = rule_filter({"resource_type": "group", "operation": "describe"})
    assert found.resource.type is AclResourceType.GROUP
    assert found.entry.operation is AclOperation.DESCRIBE


@pytest.mark.parametrize("change", [{"operation": "EAT"}, {"host": 5}, {"principal": None}])
def test_what_makes_no_sense_is_a_bad_request(change: dict[str, Any]) -> None:
    with pytest.raises(HttpError) as refused:
        new_rule(RULE | change)
    assert refused.value.answer_status == 400
