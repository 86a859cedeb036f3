"""Settings of the capture: all errors at once, and nothing accepted that is ignored."""

import pytest

from penstock.connect.connectors.postgres.settings import RULES, CaptureSettings
from penstock.errors import ConfigError

GOOD = {
    "database.hostname": "db",
    "database.user": "u",
    "database.dbname": "shop",
    "topic.prefix": "p",
}


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert RULES.validated(GOOD).errors() == {}
    wrong = {
        "database.hostname": "",
        "topic.prefix": "no blanks",
        "slot.name": "Upper",
        "plugin.name": "decoderbufs",
        "snapshot.mode": "sometimes",
        "table.include.list": "a(",
        "table.exclude.list": "b",
        "max.batch.size": "0",
        "skipped.operations": "c,x",
    }
    missing = {"database.user", "database.dbname"}
    assert RULES.validated(wrong).errors().keys() == set(wrong) | missing


def test_a_setting_of_debeziums_that_nothing_obeys_is_refused() -> None:
    config = {**GOOD, "signal.data.collection": "public.signals"}
    errors = RULES.validated(config).errors()
    assert "signal.data.collection" in errors["plugin.name"][0]
    with pytest.raises(ConfigError):
        RULES.ensure_served(config)


def test_names_of_topics_and_what_is_chosen() -> None:
    lists = {"table.include.list": r"public\.a, PUBLIC\.b.*", "column.exclude.list": ".*\\.note"}
    settings = CaptureSettings.of({**GOOD, **lists})
    assert settings.topic("public", "Größe 1") == "p.public.Gr__e_1"
    assert settings.choice.has_table("public", "b2") and not settings.choice.has_table("x", "a")
    assert not settings.choice.has_column("public", "a", "note")
    assert settings.connection()["password"] is None
