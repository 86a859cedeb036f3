"""Which cluster a tool talks to: the options that say so, old ones included.

Texts of ten years name the cluster in several ways: `--bootstrap-server`, `--broker-list`, and
`--zookeeper` from the time when tools asked ZooKeeper. All are taken.
"""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.cli.parser import ToolParser, settings_from
from penstock.errors import CommandError

if TYPE_CHECKING:  # The tools import what they use; a parser alone must stay cheap.
    from penstock.client.admin import Admin


def add_bootstrap(
    parser: ToolParser, *, zookeeper: bool = False, broker_list: bool = False
) -> None:
    """The options that name a cluster."""
    parser.add_argument(
        "--bootstrap-server",
        metavar="server to connect to",
        help="REQUIRED: The Kafka server to connect to, host:port, or several with commas.",
    )
    old = [("zookeeper", zookeeper), ("broker-list", broker_list)]
    for name, wanted in old:
        if wanted:
            parser.add_argument(
                f"--{name}",
                metavar="server to connect to",
                help="(DEPRECATED) Use --bootstrap-server instead.",
            )


def add_command_config(parser: ToolParser) -> None:
    """The option for a file with settings of the client."""
    parser.add_argument(
        "--command-config",
        metavar="config property file",
        help="Property file containing settings of the client.",
    )


def bootstrap_of(
    parser: ToolParser, options: argparse.Namespace, settings: Mapping[str, object] | None = None
) -> str:
    """The address that was given, whichever way; a missing one ends the process."""
    given = options.bootstrap_server or getattr(options, "broker_list", None)
    if given:
        return str(given)
    zookeeper = getattr(options, "zookeeper", None)
    if zookeeper:
        return brokers_behind(str(zookeeper), settings)
    named = (settings or {}).get("bootstrap.servers")
    if not named:
        parser.error(parser.missing.format("bootstrap-server"))
    return str(named)


def brokers_behind(address: str, settings: Mapping[str, object] | None = None) -> str:
    """The brokers meant by `--zookeeper ADDRESS`: those that registered there.

    A broker alone keeps its metadata itself; it may be named here in place of a ZooKeeper.
    """
    from penstock.client.errors import ClientError
    from penstock.client.wire.connection import BrokerConnection, parse_addresses
    from penstock.client.wire.security import Security

    security = Security.from_settings(settings or {})
    servers = address.partition("/")[0]  # What follows a slash is a path inside ZooKeeper.
    for host, port in parse_addresses(servers):
        try:
            BrokerConnection(host, port, "penstock-tools", timeout_s=5, security=security).close()
        except ClientError:
            continue
        return f"{host}:{port}"
    from penstock.cli.zookeeper_brokers import brokers_in_zookeeper

    protocol = str((settings or {}).get("security.protocol") or "PLAINTEXT")
    found = brokers_in_zookeeper(address, protocol)
    if found is None:
        raise CommandError(
            f"Neither a ZooKeeper nor a broker answers at {servers}. "
            "Name a broker with --bootstrap-server host:port."
        )
    return found


def admin_of(parser: ToolParser, options: argparse.Namespace) -> "Admin":
    """An Admin for the cluster that the options name."""
    from penstock.client.admin import Admin

    return Admin(settings_of(parser, options))


def settings_of(parser: ToolParser, options: argparse.Namespace) -> dict[str, object]:
    """The client's settings: those of its file, and the cluster that the options name."""
    settings: dict[str, object] = dict(settings_from(options.command_config))
    settings["bootstrap.servers"] = bootstrap_of(parser, options, settings)
    return settings
