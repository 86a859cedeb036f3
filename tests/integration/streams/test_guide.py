"""The examples of the guide that need a broker: they run as they stand, on the tests' session."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.broker import BrokerProcess
from tests.support.streams_spark import SharedSpark, create
from tests.unit.streams.whole.test_guide import BLOCK, GUIDE, NEEDS_A_BROKER

import penstock.streams
from penstock.streams import KafkaStreams, StreamsTopology

pytestmark = pytest.mark.timeout(600)


def test_the_guides_examples_of_spark_run(
    spark: SparkSession,
    broker: BrokerProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def on_this_broker(topology: StreamsTopology, config: Mapping[str, object]) -> KafkaStreams:
        here = {"bootstrap.servers": broker.address, "state.dir": str(tmp_path)}
        return KafkaStreams(
            topology, {**config, **here}, start_engine=lambda stop: SharedSpark(spark)
        )

    create(broker.address, "lines", "word-counts")
    monkeypatch.setattr(penstock.streams, "KafkaStreams", on_this_broker, raising=False)
    first, *blocks = BLOCK.findall(GUIDE.read_text())
    names: dict[str, Any] = {"__name__": "guide"}
    exec(first, names)
    shown = [one for one in blocks if any(word in one for word in NEEDS_A_BROKER)]
    assert len(shown) == 2
    for block in shown:
        exec(compile(block, GUIDE.name, "exec"), names)
    names["app"].close()
