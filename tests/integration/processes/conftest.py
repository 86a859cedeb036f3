"""Three brokers on this machine, without ZooKeeper, shared by the tests of this folder."""

from collections.abc import Iterator

import pytest
from tests.support.machine import MachineProcesses


@pytest.fixture(scope="package")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineProcesses]:
    folder = tmp_path_factory.mktemp("machine")
    with MachineProcesses(folder, 3, {"broker.session.timeout.ms": "6000"}) as running:
        running.start()
        yield running
        if running.process is not None:
            assert running.stop() == 0
