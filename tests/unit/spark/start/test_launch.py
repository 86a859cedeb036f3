"""What is left out of Spark's first words, and a start that is called off; without Spark."""

import threading

import pytest

from penstock.spark.start.calling_off import called_off_by
from penstock.spark.start.launch import without_greetings

GREETINGS = b"""\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
Setting default log level to "WARN".
Setting Spark log level to "FATAL".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
26/11/17 07:33:05 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...
"""
NEWS = b"""\
26/11/17 07:33:05 WARN Utils: Service 'SparkUI' could not bind on port 4040.
WARNING: package sun.security.action not in java.base
Exception in thread "main" java.lang.OutOfMemoryError
"""


def test_greetings_are_left_out_and_everything_else_stays() -> None:
    assert without_greetings(GREETINGS + NEWS) == NEWS
    assert without_greetings(NEWS + GREETINGS) == NEWS


def test_a_start_that_is_called_off_ends_sparks_process_and_no_later_one() -> None:
    from pyspark import java_gateway

    stop = threading.Event()
    with called_off_by(stop):
        stop.set()
        begun = java_gateway.Popen(["sleep", "600"])  # type: ignore[attr-defined]
        assert begun.wait(120) == -15
    later = java_gateway.Popen(["sleep", "600"])  # type: ignore[attr-defined]
    assert later.poll() is None
    later.kill()
    later.wait()


def test_a_start_that_nobody_calls_off_is_left_alone() -> None:
    from pyspark import java_gateway

    with pytest.raises(ZeroDivisionError), called_off_by(threading.Event()):
        begun = java_gateway.Popen(["true"])  # type: ignore[attr-defined]
        assert begun.wait(120) == 0
        1 / 0  # noqa: B018
