"""A ZooKeeper that speaks TLS alone, with keys of a test's own."""

import contextlib
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path

from tests.support.key_stores import Identity, make_identity
from tests.support.processes import HOST
from tests.support.zookeeper import ZooKeeperProcess

NETTY = "org.apache.zookeeper.ClientCnxnSocketNetty"


class KeyFiles:
    """An authority and those it vouches for, each a PEM file with key and chain."""

    def __init__(self, directory: Path, *names: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.authority = make_identity("authority")
        self.ca = directory / "ca.pem"
        self.ca.write_bytes(self.authority.certificate_pem)
        for name in names:
            self.add(name, make_identity(name, issuer=self.authority))

    def add(self, name: str, identity: Identity) -> None:
        self.path(name).write_bytes(identity.key_pem() + identity.chain_pem)

    def path(self, name: str) -> Path:
        return self.directory / f"{name}.pem"

    def zookeeper_settings(self, name: str, **more: str) -> dict[str, str]:
        """What a broker or tool says to come to ZooKeeper; `more` with underscores for dots."""
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": NETTY,
            "zookeeper.ssl.keystore.location": str(self.path(name)),
            "zookeeper.ssl.truststore.location": str(self.ca),
            **{f"zookeeper.ssl.{key.replace('_', '.')}": value for key, value in more.items()},
        }

    def server_settings(self, name: str) -> dict[str, str]:
        """What ZooKeeper itself says."""
        return {
            "ssl.keyStore.location": str(self.path(name)),
            "ssl.trustStore.location": str(self.ca),
        }

    def context(self, name: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.path(name))
        return context


class SecureZooKeeper(ZooKeeperProcess):
    """One server without a port for plain text; `context` is how to ask it how it is."""

    def __init__(
        self, directory: Path, settings: Mapping[str, str], context: ssl.SSLContext
    ) -> None:
        super().__init__(directory)
        self.context = context
        for name in ("clientPort", "clientPortAddress"):
            del self.settings[name]
        self.settings |= {"secureClientPort": str(self.port), **settings}

    def ask(self, word: bytes) -> bytes:
        answer = b""
        with contextlib.suppress(OSError):
            plain = socket.create_connection((HOST, self.port), timeout=10)
            with self.context.wrap_socket(plain, server_hostname=HOST) as connection:
                connection.sendall(word)
                while chunk := connection.recv(65536):
                    answer += chunk
        return answer
