"""What holds for every test: the shared fixtures, and long tests only when asked for."""

import os
from collections.abc import Iterable

import pytest
from tests.support.fixtures import broker, shared_broker, start_broker

__all__ = ["broker", "shared_broker", "start_broker"]


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Tests marked `long` run only with PENSTOCK_LONG=1."""
    if os.environ.get("PENSTOCK_LONG") == "1":
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes; PENSTOCK_LONG=1 runs it"))
