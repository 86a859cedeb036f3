"""Random scripts on Spark, cut into batches anywhere and restarted between them: the test driver
is the measure, and every record must be there once, in its order.
"""

import random
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.conftest import IS_LONG
from tests.integration.spark.crashing import consumed
from tests.support import streams_scripts
from tests.support.broker import BrokerProcess
from tests.support.streams_scripts import TOPOLOGIES, built, hex_of, played, random_script
from tests.support.streams_spark import Feed, application, create

pytestmark = pytest.mark.timeout(900)
# What only a host with stages has: two of them, a way back, a global table, a clock in its state.
FEW = ["count_recount", "foreign_key", "stream_global", "suppress_window"]
NAMES = list(TOPOLOGIES) if IS_LONG else FEW
FIRST_MS = 1_000_000  # A producer takes time 0 for now.
assert sys.modules[streams_scripts.__name__] is streams_scripts


@pytest.mark.parametrize("name", NAMES)
def test_batches_and_restarts_change_nothing(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path, name: str
) -> None:
    topology = built(name)
    inputs = {t for node in topology.sources for t in node.topics} - topology.internal_topics
    create(broker.address, *sorted(inputs), *{"out", "b"} - inputs)
    script = _in_order(name)
    feed, chance = Feed(broker.address), random.Random(name)
    cuts = [*sorted(chance.sample(range(1, len(script)), 1)), len(script)]
    begin = 0
    for end in cuts:
        for step in script[begin:end]:
            key, value = (None if word == "~" else word for word in step[2:4])
            feed.put(step[1], key, value, int(step[4]))
        feed.flush()
        app = application(
            spark,
            built(name),
            broker.address,
            tmp_path,
            f"app-{name.replace('_', '-')}",
            (streams_scripts.__name__,),
            max_records_per_batch=7,
        )
        app.run_once()
        assert app.failure is None
        begin = end
    found = [
        (hex_of(r.key()), hex_of(r.value()), r.timestamp()[1])
        for r in consumed(broker.address, "out")
    ]
    assert found == played(name, script)


def _in_order(name: str) -> list[streams_scripts.Step]:
    """A long script; of several topics with times that only grow, since a batch sorts by them."""
    for seed in range(1_000):
        script = [step for step in random_script(name, seed) if step[0] == "P"]
        if len(script) > 20 and len(played(name, script)) > 5:
            break
    is_of_one = len({step[1] for step in script}) < 2
    times = [int(step[4]) if is_of_one else 10 * at for at, step in enumerate(script)]
    return [(*step[:4], str(FIRST_MS + at)) for step, at in zip(script, times, strict=True)]
