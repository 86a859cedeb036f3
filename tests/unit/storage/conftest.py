"""A directory in memory for each test."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.storage.made import MEMORY


@pytest.fixture
def log_dir() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="penstock-", dir=MEMORY))
    yield path
    shutil.rmtree(path)
