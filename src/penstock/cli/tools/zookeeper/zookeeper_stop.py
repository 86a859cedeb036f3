"""zookeeper-server-stop: asks the ZooKeeper servers of this machine to stop.

Like Kafka's script it finds them in the process table, by the class that Java runs.
`--client-port` picks one of several.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.cli.parser import ToolParser
from penstock.cli.running import processes, terminate
from penstock.config.properties import read_properties
from penstock.errors import CommandError, ConfigError
from penstock.meta.zookeeper.server import MAIN_CLASS


def main(argv: Sequence[str]) -> int:
    parser = ToolParser("zookeeper-server-stop", "Stop the ZooKeeper servers of this machine.")
    parser.add_argument(
        "--client-port", metavar="port", help="Stop only the server that listens at this port."
    )
    options = parser.parse(argv)
    found = [
        pid
        for pid, file in _servers()
        if options.client_port is None or options.client_port in _client_ports(file)
    ]
    if not found:
        raise CommandError("No zookeeper server to stop")
    for pid in found:
        terminate(pid, "server")
    return 0


def settings_file(words: Sequence[str]) -> str | None:
    """The file behind the class in a server's command line; None: it is another process."""
    if MAIN_CLASS not in words:
        return None
    return next(iter(words[words.index(MAIN_CLASS) + 1 :]), None) or None


def _servers() -> Iterator[tuple[int, Path]]:
    for pid, words in processes("the server"):
        file = settings_file(words)
        if file is None:
            continue
        try:
            yield pid, Path(f"/proc/{pid}/cwd").readlink() / file
        except OSError:
            continue  # It ended while we looked, or it is not ours to look at.


def _client_ports(file: Path) -> list[str | None]:
    try:
        settings = read_properties(file)
    except ConfigError:
        return []  # It may have been moved since the server read it.
    return [settings.get("clientPort"), settings.get("secureClientPort")]
