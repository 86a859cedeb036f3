"""penstock services: what it refuses."""

import pytest

from penstock.cli.main import main


def test_a_broker_alone_is_no_service_of_this_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["services", "--override", "services=broker"]) == 1
    assert "a broker is `penstock server`" in capsys.readouterr().err


def test_without_brokers_it_says_which_setting_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["services", "--override", "services=registry"]) == 1
    assert "registry.kafkastore.bootstrap.servers is missing" in capsys.readouterr().err
