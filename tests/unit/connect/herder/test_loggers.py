"""Levels of loggers under Kafka's words."""

import logging

from penstock.connect.herder.loggers import LoggerLevels


def test_a_level_is_set_and_keeps_its_word() -> None:
    levels, name = LoggerLevels(), "penstock.tests.levels"
    levels.set(name, "TRACE")
    assert logging.getLogger(name).level == logging.DEBUG
    assert levels.document(name)["level"] == "TRACE"
    assert name in levels.names()


def test_a_level_that_is_none_changes_nothing() -> None:
    levels, name = LoggerLevels(), "penstock.tests.unset"
    levels.set(name, "LOUD")
    assert name not in levels.names()
