"""penstock cluster: run a cluster on this machine, and see how any cluster is."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from penstock.cli.bootstrap import add_command_config
from penstock.cli.parser import ToolParser, key_values, settings_from

_USAGE = (
    "penstock cluster up [--brokers 3] [--zookeepers 1] [--dir DIR] [--port 9092] [--secure]\n"
    "penstock cluster status [--bootstrap-server H:P] [--check]\n"
    "Run ZooKeeper and brokers on this machine; see how a cluster is and what is wrong with it."
)
_ACTIONS = ("up", "status")
_DIRECTORY = "penstock-cluster"
_SECURE = "penstock-secure"
_BOOTSTRAP = "localhost:9092"
# Given with the other action they would be ignored, so they are refused.
_ONLY_FOR = {
    "brokers": "up",
    "zookeepers": "up",
    "dir": "up",
    "port": "up",
    "zookeeper_port": "up",
    "override": "up",
    "secure": "up",
    "bootstrap_server": "status",
    "command_config": "status",
    "check": "status",
}


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    for name, action in _ONLY_FOR.items():
        if getattr(options, name) not in (None, False, []) and options.action != action:
            parser.error(f"--{name.replace('_', '-')} is for `penstock cluster {action}`")
    return _up(parser, options) if options.action == "up" else _status(options)


def _up(parser: ToolParser, options: argparse.Namespace) -> int:
    from penstock.cli.secure_files import SecureFiles
    from penstock.cli.stopping import stop_on_signals
    from penstock.cli.tools.cluster import files as cluster_files
    from penstock.cli.tools.cluster import up as cluster_up

    brokers = 3 if options.brokers is None else options.brokers
    zookeepers = 1 if options.zookeepers is None else options.zookeepers
    if brokers < 1:
        parser.error("--brokers: a cluster needs at least one")
    if zookeepers < 1 or zookeepers % 2 == 0:
        parser.error("--zookeepers: write 1, 3 or 5; an even number is no safer than one less")
    files = cluster_files.prepare(
        Path(options.dir or _DIRECTORY),
        brokers=brokers,
        zookeepers=zookeepers,
        port=options.port,
        zookeeper_port=options.zookeeper_port,
        overrides=key_values(options.override, "--override"),
        secure=SecureFiles(Path(options.secure).absolute()) if options.secure else None,
    )
    return cluster_up.up(files, stop_on_signals())


def _status(options: argparse.Namespace) -> int:
    from penstock.cli.tools.cluster import screen as cluster_screen
    from penstock.client.admin import Admin
    from penstock.status.gathering import gather
    from penstock.status.judging import problems

    settings: dict[str, object] = dict(settings_from(options.command_config))
    named = options.bootstrap_server or settings.get("bootstrap.servers") or _BOOTSTRAP
    with Admin({**settings, "bootstrap.servers": named}) as admin:
        state = gather(admin)
    cluster_screen.show(state)
    return 1 if options.check and problems(state) else 0


def _parser() -> ToolParser:
    parser = ToolParser("penstock cluster", _USAGE)
    option = parser.add_argument
    option("action", choices=_ACTIONS)
    option("--brokers", type=int, metavar="n", help="How many brokers to start. (default: 3)")
    option(
        "--zookeepers",
        type=int,
        metavar="n",
        help="How many ZooKeeper servers to start: 1, or an ensemble of 3 or 5. (default: 1)",
    )
    option(
        "--dir",
        metavar="path",
        help=f"Where data, logs and config/server-N.properties are. (default: {_DIRECTORY})",
    )
    option(
        "--port",
        type=int,
        metavar="port",
        help="Of the first broker; the others follow. (default: from 9092 on, as they are free)",
    )
    option(
        "--zookeeper-port",
        type=int,
        metavar="port",
        help="Of the first ZooKeeper. (default: 2181, or the next that is free)",
    )
    option(
        "--override",
        action="append",
        default=[],
        metavar="key=value",
        help="A setting for all brokers of a new cluster. May be given many times.",
    )
    option(
        "--secure",
        nargs="?",
        const=_SECURE,
        metavar="path",
        help="With TLS, passwords and access rules, by what `penstock secure init` has put "
        f"there. (default: {_SECURE})",
    )
    option(
        "--bootstrap-server",
        metavar="server to connect to",
        help=f"The cluster to look at. (default: {_BOOTSTRAP})",
    )
    add_command_config(parser)
    parser.flag("check", "End with code 1 if something is wrong, for scripts and probes.")
    return parser
