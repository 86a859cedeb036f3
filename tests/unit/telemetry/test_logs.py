"""Log lines are Kafka's, and levels change while the process runs."""

import io
import logging
import re
from collections.abc import Iterator

import pytest

from penstock.errors import ConfigError
from penstock.telemetry import logs


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Set-up is of the whole process: put back what the test runner had."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    source = logging._srcfile
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging._srcfile = source
    logging.logThreads = logging.logMultiprocessing = logging.logProcesses = True


@pytest.fixture
def output() -> io.StringIO:
    """Where lines go once `set_up` has been called."""
    return io.StringIO()


def record(created: float, **rest: object) -> logging.LogRecord:
    fields = {"name": "kafka.server.KafkaServer", "levelno": logging.INFO, "msg": "started"}
    return logging.makeLogRecord({**fields, "created": created, "levelname": "INFO", **rest})


def test_a_line_has_kafkas_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.localtime", __import__("time").gmtime)
    formatter = logs.KafkaFormatter()
    line = formatter.format(
        record(1_794_773_138.1239, msg="[KafkaServer id=%d] started", args=(0,))
    )
    assert line == (
        "[2026-11-15 20:05:38,123] INFO [KafkaServer id=0] started (kafka.server.KafkaServer)"
    )
    assert formatter.format(record(1_794_773_138.9)).startswith("[2026-11-15 20:05:38,900] ")
    assert formatter.format(record(1_794_773_139.0)).startswith("[2026-11-15 20:05:39,000] ")


@pytest.mark.parametrize(
    ("number", "name"),
    [(5, "TRACE"), (10, "DEBUG"), (20, "INFO"), (30, "WARN"), (40, "ERROR"), (50, "FATAL")],
)
def test_levels_have_the_names_of_log4j(number: int, name: str) -> None:
    line = logs.KafkaFormatter().format(record(0.0, levelno=number, levelname="x"))
    assert f"] {name} started" in line


def test_a_text_of_several_lines_and_a_traceback_are_kept(output: io.StringIO) -> None:
    logs.set_up_logging(stream=output)
    logger = logging.getLogger("kafka.test")
    logger.info("KafkaConfig values: \n\tbroker.id = 0\n")
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("it failed")
    text = output.getvalue()
    assert "KafkaConfig values: \n\tbroker.id = 0\n (kafka.test)\n" in text
    assert re.search(
        r"ERROR it failed \(kafka\.test\)\nTraceback .*\nValueError: broken\n$", text, re.DOTALL
    )


def test_levels_are_set_by_logger(output: io.StringIO) -> None:
    logs.set_up_logging({"root": "WARN", "kafka.request": "TRACE"}, stream=output)
    logging.getLogger("kafka.server").info("not shown")
    logging.getLogger("kafka.request.x").log(logs.TRACE, "shown")
    assert re.fullmatch(r"\[.*\] TRACE shown \(kafka\.request\.x\)\n", output.getvalue())


def test_levels_change_while_the_process_runs(output: io.StringIO) -> None:
    logs.set_up_logging(stream=output)
    logger = logging.getLogger("kafka.changing")
    logger.debug("not yet")
    logs.set_level("kafka.changing", "DEBUG")
    logger.debug("now")
    logs.set_level("kafka.changing", None)
    logger.debug("no longer")
    assert [line.split(" ")[3] for line in output.getvalue().splitlines()] == ["now"]


def test_every_logger_is_listed_with_the_level_it_has(output: io.StringIO) -> None:
    logs.set_up_logging({"kafka.listed": "DEBUG"}, stream=output)
    logging.getLogger("kafka.listed.below")
    found = logs.levels()
    assert found["root"] == "INFO"
    assert found["kafka.listed"] == found["kafka.listed.below"] == "DEBUG"
    logging.getLogger("kafka.listed").setLevel(25)
    assert logs.levels()["kafka.listed"] == "INFO"
    logs.set_level("kafka.listed", "OFF")
    assert logs.levels()["kafka.listed"] == "OFF"


def test_the_environment_sets_levels_and_the_call_wins(
    output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_LOG", "error, kafka.env=debug")
    logs.set_up_logging({"root": "WARNING"}, stream=output)
    assert logging.getLogger().level == logging.WARNING
    assert logging.getLogger("kafka.env").level == logging.DEBUG


def test_a_level_that_is_none_changes_nothing_and_is_a_sentence(output: io.StringIO) -> None:
    before = logging.getLogger().handlers[:]
    with pytest.raises(
        ConfigError, match=r"the log level of kafka.x is loud: it must be one of TR"
    ):
        logs.set_up_logging({"kafka.x": "loud"}, stream=output)
    assert logging.getLogger().handlers == before


def test_setting_up_twice_prints_once(output: io.StringIO) -> None:
    logs.set_up_logging(stream=io.StringIO())
    logs.set_up_logging(stream=output)
    logging.getLogger("kafka.twice").info("hello")
    assert output.getvalue().count("hello") == 1


def test_a_closed_output_does_not_stop_the_process() -> None:
    closed = io.StringIO()
    logs.set_up_logging(stream=closed)
    closed.close()
    logging.getLogger("kafka.closed").info("nobody hears this")
