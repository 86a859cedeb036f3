"""A stage travels to the workers: plan, steps and serdes come back from bytes and do the same."""

import sys

import pytest
from pyspark import cloudpickle
from tests.support import streams_scripts
from tests.support.streams_host import ListHost
from tests.support.streams_scripts import (
    MORE_TOMBSTONES,
    TOPOLOGIES,
    built,
    hex_of,
    played,
    random_script,
)


@pytest.mark.parametrize("name", sorted(set(TOPOLOGIES) - MORE_TOMBSTONES))
def test_a_stage_does_the_same_after_a_journey(name: str) -> None:
    for module in streams_scripts.MODULES:
        cloudpickle.register_pickle_by_value(sys.modules[module])
    host = ListHost(built(name))
    host.works = {n: cloudpickle.loads(cloudpickle.dumps(w)) for n, w in host.works.items()}
    script = [step for step in random_script(name, 1) if step[0] == "P"]
    for step in script:
        key, value = (None if word == "~" else word.encode() for word in step[2:4])
        host.put(step[1], key, value, int(step[4]))
        host.run()
    found = [(hex_of(r.key), hex_of(r.value), r.timestamp_ms) for r in host.written("out")]
    assert found == played(name, script)
