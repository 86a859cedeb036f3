"""What zookeeper.connect says: servers, and perhaps a node under which everything lives.

`h1:2181,h2:2181/kafka` are two servers and the chroot `/kafka`; a port may be left out.
"""

from dataclasses import dataclass

from penstock.errors import ConfigError

PORT = 2181


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkAddress:
    """Where the servers are, and the path that is the root for us."""

    servers: tuple[tuple[str, int], ...]
    chroot: str  # "" or a path such as /kafka; never ends with a slash.

    @property
    def hosts(self) -> str:
        """The servers as kazoo takes them."""
        return ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.servers
        )

    def full(self, path: str) -> str:
        """The node's path on the server."""
        return path if not self.chroot else self.chroot if path == "/" else self.chroot + path

    def own(self, full: str) -> str:
        """The path of a node below the chroot, as callers know it."""
        return full[len(self.chroot) :] or "/"


def parse_address(connect: str) -> ZkAddress:
    """Servers and chroot; ConfigError says what is wrong."""
    hosts, slash, below = connect.strip().partition("/")
    chroot = slash + below.rstrip("/") if below.rstrip("/") else ""
    if not {"", ".", ".."}.isdisjoint(chroot.split("/")[1:]):
        raise _wrong(connect, f"{chroot!r} is not the path of a node")
    servers = tuple(_server(connect, word.strip()) for word in hosts.split(","))
    return ZkAddress(servers=servers, chroot=chroot)


def _server(connect: str, word: str) -> tuple[str, int]:
    if word.startswith("["):  # An IPv6 address.
        host, _, port = word[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = word.partition(":")
    if not host or any(letter.isspace() for letter in host):
        raise _wrong(connect, f"{word!r} is not a server")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise _wrong(connect, f"{port!r} is not a port")
    return host, int(port or PORT)


def _wrong(connect: str, reason: str) -> ConfigError:
    return ConfigError(
        f"zookeeper.connect is {connect!r}, but {reason}. Write host:port of each server with "
        "commas between them and, if wanted, a path at the end: zk1:2181,zk2:2181/kafka"
    )
