"""Spark's own Kafka connector: the jars that a session needs in order to have `format("kafka")`."""

import importlib.util
import re
from collections.abc import Iterable
from pathlib import Path

from tests.support.outside import REPORT, missing

CONNECTOR = "spark-kafka"
# It keeps producers for ten minutes, which would call for a test's broker long after its end.
_SHORT_LIVES = {
    "spark.kafka.producer.cache.timeout": "1s",
    "spark.kafka.producer.cache.evictorThreadRunInterval": "1s",
}


def connector_conf() -> dict[str, str]:
    """Settings for a session; none where the jars could not be fetched."""
    if missing(CONNECTOR):
        return {}
    jars = connector_jars(REPORT.parent / "java" / CONNECTOR)
    return {"spark.jars": ",".join(map(str, jars)), **_SHORT_LIVES}


def connector_jars(home: Path) -> list[Path]:
    """The connector and what it needs beyond the jars that come with pyspark."""
    there = {artifact(path) for path in pyspark_jars()}
    return [path for path in sorted(home.glob("*.jar")) if artifact(path) not in there]


def pyspark_jars() -> Iterable[Path]:
    """What every session has anyway; looked up without importing pyspark."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None and found.origin is not None
    return (Path(found.origin).parent / "jars").glob("*.jar")


def artifact(path: Path) -> str:
    """The name of a jar without its version: `kafka-clients` of kafka-clients-3.9.2.jar."""
    return re.sub(r"-\d[\w.-]*\.jar$", "", path.name)
