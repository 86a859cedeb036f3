"""A sample of the suite of SQL cases on Spark: each query writes what the test driver says."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.conftest import IS_LONG
from tests.support.broker import BrokerProcess
from tests.support.sql_spark import chosen_cases, run_on_spark

from penstock.sql.testing.scripts import TestCase

pytestmark = pytest.mark.timeout(900)

CASES = chosen_cases(60)
if not IS_LONG:
    CASES = CASES[::15]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_a_case_of_the_suite_gives_the_same_on_spark(
    number: int, spark: SparkSession, shared_broker: BrokerProcess, tmp_path: Path
) -> None:
    case: TestCase = CASES[number]
    written = run_on_spark(case, spark, shared_broker.address, tmp_path, f"c{number}-")
    assert written
    for topic, found, wanted in written:
        assert found == wanted, topic


def test_the_sample_has_as_many_cases_as_promised() -> None:
    assert len(chosen_cases(60)) == 60
