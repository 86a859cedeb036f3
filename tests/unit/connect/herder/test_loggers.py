"""Levels of loggers under Kafka's words."""

import logging
from collections.abc import Iterator

import pytest

from penstock.connect.herder.loggers import LoggerLevels


@pytest.fixture(autouse=True)
def _kept_levels() -> Iterator[None]:
    """Levels are the whole process's: give each logger its own back."""
    root = logging.getLogger()
    before = {name: logging.getLogger(name).level for name in logging.Logger.manager.loggerDict}
    root_level = root.level
    yield
    root.setLevel(root_level)
    for name in logging.Logger.manager.loggerDict:
        logging.getLogger(name).setLevel(before.get(name, logging.NOTSET))


def test_a_level_is_set_and_keeps_its_word() -> None:
    levels, name = LoggerLevels(), "penstock.tests.levels"
    assert levels.change(name, "TRACE") == [name]
    assert logging.getLogger(name).level == logging.DEBUG
    assert levels.document(name)["level"] == "TRACE"
    assert name in levels.names()


def test_a_level_that_is_none_changes_nothing() -> None:
    levels, name = LoggerLevels(), "penstock.tests.unset"
    assert levels.change(name, "LOUD") == []
    assert name not in levels.names()


def test_loggers_below_follow_also_where_they_had_a_level_of_their_own() -> None:
    levels, above = LoggerLevels(), "penstock.tests.above"
    levels.change(f"{above}.own", "ERROR")
    logging.getLogger(f"{above}.none")
    assert levels.change(above, "DEBUG") == [above, f"{above}.none", f"{above}.own"]
    for name in (above, f"{above}.own", f"{above}.none"):
        assert logging.getLogger(name).getEffectiveLevel() == logging.DEBUG
    assert levels.document(f"{above}.own")["level"] == "DEBUG"
    assert levels.change(f"{above}.own", "INFO") == [f"{above}.own"]
    assert logging.getLogger(above).level == logging.DEBUG


def test_root_sets_all_loggers_whatever_its_letters() -> None:
    levels, name = LoggerLevels(), "penstock.tests.rooted"
    levels.change(name, "ERROR")
    told = levels.change("ROOT", "WARN")
    assert {"root", name} <= set(told)
    assert levels.document(name)["level"] == levels.document("Root")["level"] == "WARN"
    assert logging.getLogger(name).level == logging.getLogger().level == logging.WARNING
    assert levels.has("ROOT") and "ROOT" not in levels.names()
