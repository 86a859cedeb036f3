"""What executors get in place of the driver's name and password, as far as no broker is asked."""

import pytest

from penstock.spark.executor_logins import ExecutorLogins, without_secrets
from penstock.spark.options import OptionError

SETTINGS = {
    "bootstrap.servers": "h:1",
    "security.protocol": "SASL_SSL",
    "ssl.ca.location": "/ca.pem",
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "alice",
    "sasl.password": "secret",
}


def test_nothing_of_sasl_is_left() -> None:
    kept = without_secrets(SETTINGS)
    assert set(kept) == {"bootstrap.servers", "security.protocol", "ssl.ca.location"}


def test_a_driver_that_does_not_log_in_has_nothing_to_hand_on() -> None:
    with pytest.raises(OptionError, match="needs a driver that logs in"):
        ExecutorLogins({"bootstrap.servers": "h:1"})


def test_a_driver_that_came_by_a_token_hands_that_on() -> None:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    token = {
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{module} required username="t" password="h" tokenauth="true";',
    }
    assert ExecutorLogins({**without_secrets(SETTINGS), **token}).current() == token
