"""One Spark session for all tests of a process: its start costs as much as many tests."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.support.spark_connector import connector_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A small session on two cores, with the format registered and no web page."""
    from penstock.spark import session

    scratch = tmp_path_factory.mktemp("spark")
    started = session(
        "tests",
        master="local[2]",
        conf={
            "spark.driver.memory": "768m",
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
            "spark.local.dir": str(scratch / "local"),
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.ui.enabled": "false",
            **connector_conf(),
        },
    )
    yield started
    started.stop()
