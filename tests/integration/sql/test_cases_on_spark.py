"""A sample of the suite of SQL cases on Spark: each query writes what the test driver says.

Sixty cases with PENSTOCK_LONG=1, of which a part that shows each feature runs each time.
"""

import pytest
from pyspark.sql import SparkSession
from tests.conftest import IS_LONG
from tests.support.broker import BrokerProcess
from tests.support.sql_spark import FEATURES, SinkWritten, fits, has, run_all, sample

pytestmark = pytest.mark.timeout(3600)

CASES = sample(is_long=IS_LONG)


@pytest.fixture(scope="module")
def ran(
    spark: SparkSession, shared_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> list[list[SinkWritten] | Exception]:
    """All of them, several at once."""
    return run_all(CASES, spark, shared_broker.address, tmp_path_factory.mktemp("cases"))


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_a_case_of_the_suite_gives_the_same_on_spark(
    number: int, ran: list[list[SinkWritten] | Exception]
) -> None:
    written = ran[number]
    if isinstance(written, Exception):
        raise written
    assert any(sink.found for sink in written)
    for sink in written:
        assert sink.is_same, sink


@pytest.mark.parametrize("feature", FEATURES)
def test_the_sample_shows_each_feature_as_often_as_promised(feature: str) -> None:
    assert any(has(feature, case) for case in sample(is_long=False))
    assert sum(has(feature, case) for case in sample(is_long=True)) >= FEATURES[feature][0]


def test_the_sample_has_as_many_cases_as_promised_and_each_can_run() -> None:
    cases = sample(is_long=True)
    assert len({case.text for case in cases}) == 60
    assert [case.name for case in cases if not fits(case)] == []
