"""The files of config/, which tutorials name: each command takes its own without a warning."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.support.processes import ROOT

from penstock.config.properties import parse_properties
from penstock.connect.settings import WorkerSettings
from penstock.mirror.config import MirrorConfig
from penstock.registry.service.config import RegistryConfig
from penstock.rest.config import RestConfig
from penstock.sql.service.settings import SqlConfig

CONFIG = ROOT / "config"
LOOPBACK = ("localhost", "127.0.0.1")
READERS: Mapping[str, Callable[[Mapping[str, str]], Any]] = {
    "connect-standalone": WorkerSettings.standalone,
    "connect-distributed": WorkerSettings.distributed,
    "kafka-rest": RestConfig.of,
    "ksql-server": SqlConfig.of,
    "schema-registry": RegistryConfig.of,
}


def shipped(name: str) -> dict[str, str]:
    return parse_properties((CONFIG / f"{name}.properties").read_text())


@pytest.mark.parametrize("name", READERS)
def test_a_service_knows_every_setting_of_its_file(name: str) -> None:
    assert READERS[name](shipped(name)).warnings == ()


def test_the_mirror_reads_its_file() -> None:
    (flow,) = MirrorConfig.of(shipped("connect-mirror-maker")).flows
    assert (flow.source, flow.target) == ("A", "B")


def test_nothing_listens_beyond_this_machine() -> None:
    for file in CONFIG.glob("*.properties"):
        for listener in parse_properties(file.read_text()).get("listeners", "").split(","):
            assert not listener or any(f"//{host}:" in listener for host in LOOPBACK), file
