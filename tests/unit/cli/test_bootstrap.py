"""Which cluster: every way of saying it that a decade of texts has."""

import socket

import pytest

from penstock.cli.bootstrap import add_bootstrap, bootstrap_of, brokers_behind
from penstock.cli.parser import ToolParser
from penstock.errors import CommandError


def given(*argv: str, settings: dict[str, object] | None = None) -> str:
    parser = ToolParser("tool", "It tools.")
    add_bootstrap(parser, zookeeper=True, broker_list=True)
    parser.flag("list", "List.")
    return bootstrap_of(parser, parser.parse(argv), settings)


def test_new_and_old_options_name_the_cluster() -> None:
    assert given("--bootstrap-server", "a:1") == "a:1"
    assert given("--broker-list", "a:1,b:2") == "a:1,b:2"
    assert given(settings={"bootstrap.servers": "c:3"}) == "c:3"


def test_without_any_the_option_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        given("--list")
    assert 'Missing required argument "[bootstrap-server]"' in capsys.readouterr().err


def test_a_zookeeper_without_a_broker_is_told_what_to_write() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(CommandError, match="--bootstrap-server host:port"):
        brokers_behind(f"127.0.0.1:{port}/kafka")
