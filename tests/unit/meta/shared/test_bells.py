"""Pipes that ring, and tell of their reader's death."""

import asyncio
import os
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.meta.shared.bells import OwnBell, PeerBells, is_answered, sweep


async def test_a_ring_names_the_ringer(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    bell, rung = OwnBell(tmp_path), loop.create_future()
    bell.listen(loop, lambda ringers: rung.done() or rung.set_result(ringers))
    peers = PeerBells(tmp_path, loop, on_death=lambda _: None)
    peers.keep({1: bell.name})
    peers.ring(42)
    assert await asyncio.wait_for(rung, 60) == {42}
    peers.close()
    bell.close(loop)


async def test_the_end_of_a_reader_is_told_at_once(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    bell, dead = OwnBell(tmp_path), loop.create_future()
    peers = PeerBells(tmp_path, loop, on_death=dead.set_result)
    peers.keep({1: bell.name})
    assert is_answered(tmp_path, bell.name)
    bell.close(loop)
    assert await asyncio.wait_for(dead, 60) == 1
    assert not is_answered(tmp_path, bell.name)
    peers.ring(42)  # Nobody is there, and nothing happens.
    peers.close()


async def test_a_session_whose_pipe_is_gone_is_dead(tmp_path: Path) -> None:
    dead: list[int] = []
    peers = PeerBells(tmp_path, asyncio.get_running_loop(), on_death=dead.append)
    peers.keep({9: "gone.bell"})
    assert dead == [9]
    peers.close()


async def test_a_reader_that_never_looks_holds_up_nobody(tmp_path: Path) -> None:
    bell = OwnBell(tmp_path)
    peers = PeerBells(tmp_path, asyncio.get_running_loop(), on_death=lambda _: None)
    peers.keep({1: bell.name})
    for _ in range(20_000):  # More than a pipe holds.
        peers.ring(42)
    peers.close()
    bell.discard()


def test_only_what_nobody_reads_is_swept(tmp_path: Path) -> None:
    bell, left = OwnBell(tmp_path), tmp_path / "left.bell"
    os.mkfifo(left)
    sweep(tmp_path, set())
    assert [one.name for one in tmp_path.iterdir()] == [bell.name]
    bell.discard()


def test_a_place_without_pipes_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="local file system"):
        OwnBell(tmp_path / "nowhere")
