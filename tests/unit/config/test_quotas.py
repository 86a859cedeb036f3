"""Quotas: which keys users, clients and addresses have, and what a value may be."""

import math

import pytest

from penstock.config.quotas import check_quota, parse_quotas, quota_settings, quota_text
from penstock.errors import InvalidRequest


def test_users_and_clients_have_four_quotas_and_addresses_one() -> None:
    both = {"user": "alice", "client-id": None}
    assert set(quota_settings(both)) == {
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
    }
    assert set(quota_settings({"ip": "10.0.0.1"})) == {"connection_creation_rate"}


@pytest.mark.parametrize("entity", [{}, {"ip": "a", "user": "b"}, {"group": "g"}])
def test_other_entities_are_refused(entity: dict[str, str | None]) -> None:
    with pytest.raises(InvalidRequest, match=r"Invalid quota entity types"):
        quota_settings(entity)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("bytes", 1.0, "Invalid configuration key bytes"),
        ("connection_creation_rate", 1.0, "Invalid configuration key connection_creation_rate"),
        ("producer_byte_rate", 0.0, "Quota producer_byte_rate must be greater than 0"),
        ("request_percentage", -1.0, "Quota request_percentage must be greater than 0"),
        ("request_percentage", math.nan, "Quota request_percentage must be greater than 0"),
        ("request_percentage", math.inf, "Proposed value for request_percentage is too large for"),
        ("producer_byte_rate", 1.5, "producer_byte_rate cannot be a fractional value."),
        ("producer_byte_rate", 1e20, "Proposed value for producer_byte_rate is too large for a LO"),
    ],
)
def test_a_bad_quota_is_refused(key: str, value: float, sentence: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_quota({"client-id": "c"}, key, value)
    assert sentence in str(caught.value)


def test_a_good_quota_is_stored_whole_where_its_key_is() -> None:
    check_quota({"client-id": "c"}, "producer_byte_rate", 1024.0)
    check_quota({"user": None}, "request_percentage", 12.5)
    assert quota_text("producer_byte_rate", 1024.0) == "1024"
    assert quota_text("request_percentage", 12.5) == "12.5"


def test_quotas_are_read_past_credentials() -> None:
    stored = {"producer_byte_rate": "1024", "SCRAM-SHA-256": "salt=..."}
    assert parse_quotas(stored) == {"producer_byte_rate": 1024.0}


@pytest.mark.parametrize("text", ["", "many", "0", "-1", "nan", "inf"])
def test_a_stored_value_that_is_no_limit_limits_nobody(text: str) -> None:
    stored = {"producer_byte_rate": text, "consumer_byte_rate": "5"}
    assert parse_quotas(stored) == {"consumer_byte_rate": 5.0}
