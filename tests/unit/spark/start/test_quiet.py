"""A JVM that goes away makes no noise on our terminal; anything else is still said."""

import logging

import pytest

from penstock.spark.start.quiet import hush_py4j


def record(path: str) -> logging.LogRecord:
    return logging.LogRecord("root", logging.ERROR, path, 1, "Exception", (), None)


def test_what_py4j_gives_to_the_root_logger_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "filters", [])
    py4j = logging.getLogger("py4j")
    monkeypatch.setattr(py4j, "level", py4j.level)
    hush_py4j()
    hush_py4j()
    assert len(root.filters) == 1
    assert not root.filter(record("/venv/site-packages/py4j/clientserver.py"))
    assert root.filter(record("/home/me/py4j_user.py"))
