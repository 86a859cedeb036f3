"""What holds for every test: the shared fixtures, and long tests only when asked for."""

import os
from collections.abc import Iterable

import hypothesis
import pytest
from tests.support.fixtures import broker, shared_broker, start_broker
from tests.support.spark import spark

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
