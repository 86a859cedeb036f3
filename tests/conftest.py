"""What holds for every test: the shared fixtures, and long tests only when asked for."""

import gc
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import hypothesis
import pytest
from tests.support.fixtures import broker, shared_broker, start_broker
from tests.support.spark import spark

from penstock.storage.segments.file_slice import OPEN_FILES

__all__ = ["broker", "shared_broker", "spark", "start_broker"]

# The same examples in every run, so that a red run means a change; the long mode looks for new
# ones. No deadline: how long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("same examples", derandomize=True, deadline=None)
hypothesis.settings.register_profile("new examples", deadline=None)
IS_LONG = os.environ.get("PENSTOCK_LONG") == "1"
hypothesis.settings.load_profile("new examples" if IS_LONG else "same examples")


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Tests marked `long` run only with PENSTOCK_LONG=1."""
    if IS_LONG:
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes; PENSTOCK_LONG=1 runs it"))


_FILES_MANY = 256


@pytest.fixture(scope="module", autouse=True)
def _few_open_files() -> Iterator[None]:
    """Close the files of brokers that ran in this process and are gone.

    They put what they had out of the collector's sight, and closed segments stay open for the next
    reader. Beyond 1,024 descriptors, Spark's callbacks into this process stop: they use select().
    """
    yield
    if len(list(Path("/proc/self/fd").iterdir())) > _FILES_MANY:
        OPEN_FILES.clear()
        gc.unfreeze()
        gc.collect()
