"""Both tables of the light services know the same ones."""

import pytest

from penstock.http.server import Limits
from penstock.platform.services.table import runner_of
from penstock.platform.settings import LIGHT, ServiceKind


@pytest.mark.parametrize("kind", LIGHT, ids=lambda kind: kind.name)
def test_every_service_that_can_be_chosen_can_be_run(kind: ServiceKind) -> None:
    config = kind.configure({kind.bootstrap: "127.0.0.1:9092"})
    assert isinstance(runner_of(kind.name).limits(config), Limits)
    assert config.listeners
