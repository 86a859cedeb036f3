"""The secured broker of these tests: its keys, its users, and the settings of its clients."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.broker import BrokerProcess
from tests.support.key_stores import Identity, make_identity
from tests.support.processes import HOST

STORE_PASSWORD = "a store's password"


@dataclass(slots=True, kw_only=True)
class SecuredBroker:
    """One broker, its authority, and the files of its clients."""

    directory: Path
    authority: Identity
    server: Identity
    client: Identity
    broker: BrokerProcess = field(init=False)
    ports: Mapping[str, int] = field(init=False)
    protocols: tuple[str, ...] = ("PLAINTEXT", "SSL")

    @classmethod
    def make_world(cls, directory: Path, authority: Identity) -> "SecuredBroker":
        made = cls(
            directory=directory,
            authority=authority,
            server=make_identity("server", issuer=authority),
            client=make_identity("alice", issuer=authority),
        )
        made.ca.write_bytes(authority.certificate_pem)
        (directory / "client.pem").write_bytes(made.client.chain_pem)
        (directory / "client.key").write_bytes(made.client.key_pem())
        (directory / "server.p12").write_bytes(made.server.pkcs12(STORE_PASSWORD))
        (directory / "client.p12").write_bytes(made.client.pkcs12(STORE_PASSWORD))
        return made

    @property
    def ca(self) -> Path:
        return self.directory / "ca.pem"

    def address(self, protocol: str) -> str:
        return f"{HOST}:{self.ports[protocol]}"

    def settings(self, protocol: str, mechanism: str = "", **more: object) -> dict[str, object]:
        """Under librdkafka's names; `more` with underscores for dots."""
        found: dict[str, object] = {
            "bootstrap.servers": self.address(protocol),
            "security.protocol": protocol,
        }
        if protocol.endswith("SSL"):
            found["ssl.ca.location"] = str(self.ca)
        if protocol == "SSL":
            found["ssl.certificate.location"] = str(self.directory / "client.pem")
            found["ssl.key.location"] = str(self.directory / "client.key")
        return found | {name.replace("_", "."): value for name, value in more.items()}


def listener_settings(world: SecuredBroker, ports: Mapping[str, int]) -> dict[str, str]:
    return {
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.replication.factor": "1",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(world.directory / "server.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(world.ca),
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
    }
