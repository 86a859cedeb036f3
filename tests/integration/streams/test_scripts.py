"""Random scripts on Spark, cut into batches anywhere and restarted between them: the test driver
is the measure, and every record must be there once, in its order. Where the disk is lost at the
restart, the application goes on from its topics.
"""

import random
import shutil
import sys
import time
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
LOST = FEW[1:]
# Records that come through a repartition topic meet others a batch later than in the test driver;
# tests/unit/streams/tasks/whole/test_cut_into_batches.py has these, a batch for each record.
LATER = {"cogroup_tumbling", "named_cogroup", "stream_global_named"}
LATER |= {
    "cogroup_three",
    "join_sessions",
    "table_again",
    "flushing",
}  # The last goes by the clock.
CASES = [(name, lost) for name in TOPOLOGIES if name not in LATER for lost in (False, True)]
if not IS_LONG:
    CASES = [(name, name in LOST) for name in FEW]
# Of today: a changelog of windows forgets what is older than a day.
FIRST_MS = time.time_ns() // 10**12 * 10**6
assert sys.modules[streams_scripts.__name__] is streams_scripts


@pytest.mark.parametrize(("name", "lost"), CASES)
def test_batches_and_restarts_change_nothing(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path, name: str, lost: bool
) -> None:
    topology = built(name)
    inputs = {t for node in topology.sources for t in node.topics} - topology.internal_topics
    create(broker.address, *sorted(inputs | _outputs(name) | {"out", "b"}))
    feed, parts = Feed(broker.address), _parts(name)
    # Several topics are one batch for each part, so that records are taken by their times.
    limit = 7 if len(inputs) == 1 else 1_000
    for part in parts:
        for step in part:
            key, value = (None if word == "~" else word for word in step[2:4])
            feed.put(step[1], key, value, int(step[4]))
        feed.flush()
        app = application(
            spark,
            built(name),
            broker.address,
            tmp_path,
            f"app-{name.replace('_', '-')}",
            streams_scripts.MODULES,
            max_records_per_batch=limit,
            statestore_cache_max_bytes=0,  # Every result, also of a count.
        )
        app.run_once()
        assert app.failure is None
        if lost:
            shutil.rmtree(app.folder.path)
    found = [
        (hex_of(r.key()), hex_of(r.value()), r.timestamp()[1])
        for r in consumed(broker.address, "out")
    ]
    wanted = played(name, [step for part in parts for step in part])
    if "foreign" in name:  # Rows that changed again before they were answered are left out.
        assert _table(found) == _table(wanted)
    else:
        assert found == wanted


def _parts(name: str) -> list[list[streams_scripts.Step]]:
    """A long script in two parts, with a restart between them.

    Of several topics times only grow, since a batch is sorted by them, and a global table comes
    first, since its records are taken before the others of a batch. A topic that the topology
    itself writes is left to it, since what it writes comes behind what lies there.
    """
    written = _outputs(name)
    for seed in range(1_000):
        script = [s for s in random_script(name, seed) if s[0] == "P" and s[1] not in written]
        if len(script) > 20:
            parts = _timed(_cut(name, script))
            if len(played(name, [step for part in parts for step in part])) > 5:
                return parts
    raise AssertionError(f"no script gives {name} enough to do")


def _cut(name: str, script: list[streams_scripts.Step]) -> list[list[streams_scripts.Step]]:
    at = random.Random(name).randrange(1, len(script))
    parts = [script[:at], script[at:]]
    if "global" in name:
        parts = [sorted(part, key=lambda step: step[1] != "b") for part in parts]
    return parts


def _timed(parts: list[list[streams_scripts.Step]]) -> list[list[streams_scripts.Step]]:
    script = [step for part in parts for step in part]
    is_of_one = len({step[1] for step in script}) < 2
    times = iter(int(step[4]) if is_of_one else 3 * at for at, step in enumerate(script))
    return [[(*step[:4], str(FIRST_MS + next(times))) for step in part] for part in parts]


def _outputs(name: str) -> set[str]:
    """The topics of the user's that the topology writes."""
    topology = built(name)
    sinks = [node for node in topology.nodes if node.kind == "sink"]
    return {topic for node in sinks for topic in node.topics} - topology.internal_topics


def _table(records: list[streams_scripts.Answer]) -> dict[str, str]:
    """The newest value of each key."""
    newest = {key: value for key, value, _ in records}
    return {key: value for key, value in newest.items() if value != "~"}
