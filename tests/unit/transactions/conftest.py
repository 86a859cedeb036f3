"""A world for each test: real logs and partitions, and time that only passes when all wait."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.unit.transactions.virtual_time import run_virtually
from tests.unit.transactions.world import World

Story = Callable[[World], Coroutine[Any, Any, None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Story], None]:
    """Run a story in a world with one replica."""
    return lambda story: _play(story, tmp_path, is_replicated=False)


@pytest.fixture
def play_replicated(tmp_path: Path) -> Callable[[Story], None]:
    """Run a story in a world whose follower confirms only when the story says so."""
    return lambda story: _play(story, tmp_path, is_replicated=True)


def _play(story: Story, directory: Path, *, is_replicated: bool) -> None:
    async def run() -> None:
        world = World(directory, Random(7), is_replicated=is_replicated)
        world.start()
        await story(world)

    run_virtually(run())
