"""What a broker asks of the process it runs in."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _thresholds_as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_full_collections_come_seldom_however_often_a_broker_starts(
    serve: Callable[..., Any], tmp_path: Path
) -> None:
    gc.set_threshold(700, 10, 10)

    serve({"log.dirs": str(tmp_path / "first")})
    once = gc.get_threshold()
    serve({"log.dirs": str(tmp_path / "second")})

    assert once[2] > 10
    assert gc.get_threshold() == once
