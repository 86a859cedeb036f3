"""`penstock zookeeper`, Kafka's zookeeper-server-start: become the real ZooKeeper server.

The server and its jars come from meta/zookeeper/server.py; this process is replaced by the Java
one, so that signals reach it and its number stays.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from penstock.cli.parser import ToolParser, settings_from
from penstock.meta.zookeeper.server import ServerLaunch, prepare

_USAGE = "USAGE: zookeeper-server-start [-daemon] zookeeper.properties"


def main(argv: Sequence[str]) -> int:
    parser = _parser()
    options = parser.parse(argv)
    if options.file is None and not options.override:
        parser.error(_USAGE)
    settings = settings_from(options.file, options.override, "--override")
    launch = prepare(settings, my_id=options.myid, heap=options.heap)
    if options.daemon:
        return _start_in_background(launch)
    if launch.is_loopback_by_default:
        print(
            f"ZooKeeper listens at {launch.address}, for this machine alone. To let others in, "
            "write clientPortAddress=0.0.0.0 (secureClientPortAddress with TLS) into its settings."
        )
    return _become(launch)


def _become(launch: ServerLaunch) -> NoReturn:
    sys.stdout.flush()
    os.execv(launch.command[0], launch.command)


def _start_in_background(launch: ServerLaunch) -> int:
    directory = Path(os.environ.get("LOG_DIR", "logs"))
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "zookeeper.out").open("ab") as out:
        subprocess.Popen(
            launch.command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return 0


def _parser() -> ToolParser:
    parser = ToolParser(
        "zookeeper-server-start", "Start a ZooKeeper server: penstock zookeeper FILE.properties"
    )
    parser.told_when_bare = _USAGE
    parser.add_argument("file", nargs="?", help="a zookeeper.properties")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="key=value",
        help="A setting that overrides the properties file. May be given many times.",
    )
    parser.add_argument(
        "--myid",
        type=int,
        metavar="number",
        help="Which server.N of the settings this is; written to dataDir/myid.",
    )
    parser.add_argument(
        "--heap", default="256m", metavar="size", help="Memory for Java's heap, such as 256m."
    )
    parser.add_argument(
        "--daemon",
        action="store_true",
        help="Start in the background; what it prints goes to logs/zookeeper.out, or to the "
        "directory that the environment variable LOG_DIR names.",
    )
    return parser
