"""Settings of the capture: all errors at once, and nothing accepted that is ignored."""

import pytest

from penstock.connect.connectors.mysql.settings import RULES, BinlogSettings
from penstock.errors import ConfigError

GOOD = {
    "database.hostname": "db",
    "database.user": "u",
    "database.server.id": "7",
    "topic.prefix": "p",
}


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert RULES.validated(GOOD).errors() == {}
    wrong = {
        "database.hostname": "",
        "database.server.id": "0",
        "database.ssl.mode": "perhaps",
        "topic.prefix": "no blanks",
        "database.include.list": "a",
        "database.exclude.list": "b(",
        "bigint.unsigned.handling.mode": "short",
    }
    assert RULES.validated(wrong).errors().keys() == (set(wrong) - {"database.include.list"}) | {
        "database.user"
    }


def test_a_setting_of_debeziums_that_nothing_obeys_is_refused() -> None:
    config = {**GOOD, "include.query": "true"}
    errors = RULES.validated(config).errors()
    assert "include.query" in errors["database.hostname"][0]
    with pytest.raises(ConfigError, match=r"include\.query"):
        RULES.ensure_served(config)
    RULES.ensure_served({**GOOD, "include.query": "false"})


def test_databases_are_chosen_as_what_tables_lie_in() -> None:
    settings = BinlogSettings.of({**GOOD, "database.include.list": "shop"}, "mariadb")
    assert settings.choice.has_table("shop", "orders")
    assert not settings.choice.has_table("other", "orders")
    assert settings.topic("shop", "Größe 1") == "p.shop.Gr__e_1"
    assert settings.heartbeat_topic == "__debezium-heartbeat.p"
