"""A directory in memory for the logs under test: they flush much, and a disk would be slow."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def log_dir() -> Iterator[Path]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = Path(tempfile.mkdtemp(prefix="penstock-", dir=memory))
    yield path
    shutil.rmtree(path)
