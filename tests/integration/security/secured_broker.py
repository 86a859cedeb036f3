"""The secured broker of these tests: its keys, its users, and the settings of its clients."""

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.broker import BrokerProcess
from tests.support.key_stores import Identity, make_identity
from tests.support.processes import HOST

from penstock.client.wire.cluster import ClusterClient
from penstock.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)

STORE_PASSWORD = "a store's password"
PASSWORD = 'pen"cil, =1'
TOKEN_KEY = "the key of all tokens"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM)
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured."
    "OAuthBearerUnsecuredValidatorCallbackHandler"
)
ONE_WAY = "ONE_WAY"  # A listener of TLS that asks clients for no certificate.


@dataclass(slots=True, kw_only=True)
class SecuredBroker:
    """One broker, its authority, and the files of its clients."""

    directory: Path
    authority: Identity
    server: Identity
    client: Identity
    broker: BrokerProcess = field(init=False)
    ports: Mapping[str, int] = field(init=False)
    protocols: tuple[str, ...] = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL", ONE_WAY)

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
            "security.protocol": protocol_of(protocol),
        }
        if protocol_of(protocol).endswith("SSL"):
            found["ssl.ca.location"] = str(self.ca)
        if protocol == "SSL":
            found["ssl.certificate.location"] = str(self.directory / "client.pem")
            found["ssl.key.location"] = str(self.directory / "client.key")
        if mechanism:
            found |= {"sasl.mechanism": mechanism}
            found |= {"sasl.username": "alice", "sasl.password": PASSWORD}
        return found | {name.replace("_", "."): value for name, value in more.items()}


def protocol_of(listener: str) -> str:
    """As a client has to name it."""
    return "SSL" if listener == ONE_WAY else listener


def unsigned_token(subject: str, *, lives_s: int = 3600) -> str:
    """What a client shows where tokens need no signature."""
    now_s = int(time.time())
    parts = ({"alg": "none"}, {"sub": subject, "iat": now_s, "exp": now_s + lives_s})
    texts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    return b".".join([*texts, b""]).decode()


def add_scram_users(address: str, *users: str, password: str = PASSWORD) -> None:
    """What `kafka-configs --alter --add-config 'SCRAM-SHA-256=[password=...]'` sends."""
    hashes = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
    wanted = [
        ScramCredentialUpsertion(
            name=user,
            mechanism=number,
            iterations=4096,
            salt=b"salt for tests",
            salted_password=hashlib.pbkdf2_hmac(name, password.encode(), b"salt for tests", 4096),
        )
        for user in users
        for number, name in hashes.values()
    ]
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=wanted)
    with ClusterClient(address) as cluster:
        answer = cluster.ask_any(request, AlterUserScramCredentialsResponse)
    assert [one.error_code for one in answer.results] == [0] * len(users), answer


def listener_settings(world: SecuredBroker, ports: Mapping[str, int]) -> dict[str, str]:
    quoted = PASSWORD.replace('"', '\\"')
    sasl = {}
    for name in ("sasl_plaintext", "sasl_ssl"):
        lead = f"listener.name.{name}"
        sasl[f"{lead}.plain.sasl.jaas.config"] = f'{PLAIN_MODULE} required user_alice="{quoted}";'
        sasl[f"{lead}.oauthbearer.sasl.server.callback.handler.class"] = UNSECURED
    return {
        **sasl,
        "sasl.enabled.mechanisms": ",".join([*MECHANISMS, "OAUTHBEARER"]),
        "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items()),
        "inter.broker.listener.name": "PLAINTEXT",
        "delegation.token.secret.key": TOKEN_KEY,
        "delegation.token.expiry.check.interval.ms": "200",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.replication.factor": "1",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(world.directory / "server.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(world.ca),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol_of(name)}" for name in ports),
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/,DEFAULT",
    }
