"""Which flows a process takes, and how many tasks they may have."""

import pytest

from penstock.errors import ConfigError
from penstock.mirror.config import MirrorConfig
from penstock.mirror.running.supervisor import chosen_targets, slots_of

CONFIG = MirrorConfig.of(
    {
        "clusters": "A, B",
        "A.bootstrap.servers": "a:1",
        "B.bootstrap.servers": "b:1",
        "A->B.enabled": "true",
        "B->A.enabled": "true",
        "A->B.tasks.max": "5",
    }
)


def test_a_process_can_be_for_some_targets_alone() -> None:
    chosen = chosen_targets(CONFIG, ["B"])
    assert [flow.name for flow in chosen.flows] == ["A->B"]
    assert [beat.target for beat in chosen.beats] == ["B"]
    assert chosen_targets(CONFIG, []) is CONFIG
    with pytest.raises(ConfigError, match="--clusters names C; the file has A, B"):
        chosen_targets(CONFIG, ["C"])


def test_there_is_a_slot_for_every_task() -> None:
    assert slots_of(CONFIG) == (5 + 1) + (1 + 1) + 2
