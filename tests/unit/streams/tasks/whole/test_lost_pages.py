"""A task that loses its pages goes on from changelogs and progress as if nothing had happened."""

import random
from pathlib import Path

import pytest
from tests.conftest import IS_LONG
from tests.support.streams_host import ListHost
from tests.support.streams_scripts import (
    MORE_TOMBSTONES,
    TOPOLOGIES,
    built,
    hex_of,
    played,
    random_script,
)

SEEDS = range(60 if IS_LONG else 3)


@pytest.mark.parametrize("name", sorted(set(TOPOLOGIES) - MORE_TOMBSTONES))
def test_pages_made_anew_from_topics_change_nothing(name: str, tmp_path: Path) -> None:
    """Each record is a batch, and pages are lost between some of them."""
    for seed in SEEDS:
        script = [step for step in random_script(name, seed) if step[0] == "P"]
        chance = random.Random(f"{name} {seed}")
        host = ListHost(built(name))
        for number, step in enumerate(script):
            key, value = (None if word == "~" else word.encode() for word in step[2:4])
            host.put(step[1], key, value, int(step[4]))
            host.run()
            if chance.random() < 0.2:
                host.lose_all_but_topics(tmp_path / f"{seed}-{number}")
        found = [(hex_of(r.key), hex_of(r.value), r.timestamp_ms) for r in host.written("out")]
        assert found == played(name, script), f"seed {seed}"


@pytest.mark.parametrize("name", ["foreign_key", "foreign_key_left", "foreign_key_named"])
def test_a_foreign_key_join_of_several_partitions_ends_right(name: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        script = [step for step in random_script(name, seed) if step[0] == "P"]
        script = [(*step[:4], str(10 * at)) for at, step in enumerate(script, 1)]
        host = ListHost(built(name), 3)
        for number, step in enumerate(script):
            key, value = (None if word == "~" else word.encode() for word in step[2:4])
            host.put(step[1], key, value, int(step[4]))
            if number % 3 == 0:
                host.run()
                host.lose_all_but_topics(tmp_path / f"{seed}-{number}")
        host.run()
        newest = {key: value for key, value, _ in played(name, script) if key != "~"}
        wanted = {key: value for key, value in newest.items() if value != "~"}
        assert {f"x{k.hex()}": f"x{v.hex()}" for k, v in host.table("out").items()} == wanted
