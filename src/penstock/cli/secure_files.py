"""The folder that `penstock secure init` makes: keys, users, and settings that name them.

This knows what is in which file. Making it is the tool's business, and using it `cluster up`'s.
"""

import datetime
import re
import shutil
import ssl
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.config.properties import format_properties, read_properties
from penstock.errors import CommandError
from penstock.security.private_files import write_private

if TYPE_CHECKING:
    from penstock.client.wire.security import Security

ADMIN, BROKER = "admin", "broker"
_AUTHORITY: Final = "ca"
_ZOOKEEPER: Final = "zookeeper"
_TAKEN: Final = frozenset({ADMIN, BROKER, _AUTHORITY, _ZOOKEEPER})
_USER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOST: Final = re.compile(r"[A-Za-z0-9.:_-]{1,253}")
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass(frozen=True, slots=True)
class SecureFiles:
    """Where each file is."""

    directory: Path

    @property
    def authority(self) -> Path:
        return self.directory / f"{_AUTHORITY}.pem"

    @property
    def broker_properties(self) -> Path:
        """What all brokers say; tools come to ZooKeeper with it, too."""
        return self.directory / f"{BROKER}.properties"

    @property
    def zookeeper_properties(self) -> Path:
        return self.directory / f"{_ZOOKEEPER}.properties"

    def key(self, name: str) -> Path:
        """Key and certificates of a server."""
        return self.directory / f"{name}.pem"

    def client(self, user: str) -> Path:
        """What a user's client says, in Kafka's own names."""
        return self.directory / f"{user}.properties"

    def librdkafka_client(self, user: str) -> Path:
        return self.directory / f"{user}.librdkafka.properties"

    def refuse_missing(self) -> None:
        """CommandError where this is not the folder that was made."""
        for file in (self.broker_properties, self.zookeeper_properties, self.client(ADMIN)):
            if not file.exists():
                raise CommandError(
                    f"{file} is not there. Make keys, users and settings first: "
                    f"penstock secure init {self.directory}"
                )

    def admin_security(self) -> "Security":
        from penstock.client.wire.security import Security

        return Security.from_settings(read_properties(self.client(ADMIN)))

    def zookeeper_context(self) -> ssl.SSLContext:
        from penstock.meta.zookeeper.tls import zookeeper_tls

        tls = zookeeper_tls(read_properties(self.broker_properties))
        if tls is None:
            raise CommandError(f"{self.broker_properties} does not come to ZooKeeper with TLS.")
        return tls.client_context()


def make_secure_files(
    directory: Path,
    *,
    users: Sequence[str],
    hosts: Sequence[str],
    now: datetime.datetime,
    days: int,
    new_password: Callable[[], str],
) -> SecureFiles:
    """All of it or nothing; what is there already is never written over."""
    _refuse_names(users, hosts)
    files = SecureFiles(directory.absolute())
    _refuse_present(files.directory)
    passwords = {user: new_password() for user in (BROKER, ADMIN, *users)}
    contents = {
        **_keys(files, hosts, now, days),
        files.broker_properties: format_properties(_broker_settings(files, passwords)),
        files.zookeeper_properties: format_properties(_zookeeper_settings(files)),
        **_client_files(files, {user: passwords[user] for user in (ADMIN, *users)}),
    }
    try:
        _write_all(files.directory, contents)
    except OSError as error:
        raise CommandError(f"{files.directory} cannot be made: {error.strerror}.") from error
    return files


def _keys(
    files: SecureFiles, hosts: Sequence[str], now: datetime.datetime, days: int
) -> dict[Path, bytes]:
    from penstock.security.tls.small_authority import SmallAuthority

    authority = SmallAuthority.create("penstock secure init", now=now, days=days)
    made = {
        files.authority: authority.certificate_pem,
        files.directory / f"{_AUTHORITY}.key": authority.key_pem,
    }
    # One name for all brokers: to it ZooKeeper gives the nodes that any of them makes.
    for name in (BROKER, _ZOOKEEPER):
        made[files.key(name)] = authority.sign(name, hosts=hosts, now=now).pem
    return made


def _broker_settings(files: SecureFiles, passwords: Mapping[str, str]) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    own = f'username="{BROKER}" password="{passwords[BROKER]}"'
    return {
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{_PLAIN} required {own} {users};",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.key(BROKER)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.authority),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": f"User:{BROKER};User:{ADMIN}",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keystore.location": str(files.key(BROKER)),
        "zookeeper.ssl.truststore.location": str(files.authority),
        "zookeeper.ssl.enabled.protocols": "TLSv1.2,TLSv1.3",
        "zookeeper.set.acl": "true",
    }


def _zookeeper_settings(files: SecureFiles) -> dict[str, str]:
    own, trusted = str(files.key(_ZOOKEEPER)), str(files.authority)
    return {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
        "ssl.enabledProtocols": "TLSv1.2,TLSv1.3",
        "ssl.keyStore.location": own,
        "ssl.trustStore.location": trusted,
        # Between the servers of an ensemble.
        "sslQuorum": "true",
        "ssl.quorum.keyStore.location": own,
        "ssl.quorum.trustStore.location": trusted,
    }


def _client_files(files: SecureFiles, passwords: Mapping[str, str]) -> dict[Path, str]:
    found = {}
    for user, password in passwords.items():
        both = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
        login = f'{_PLAIN} required username="{user}" password="{password}";'
        trusted = str(files.authority)
        java = {"ssl.truststore.type": "PEM", "ssl.truststore.location": trusted}
        found[files.client(user)] = format_properties({**both, "sasl.jaas.config": login, **java})
        librdkafka = {"sasl.username": user, "sasl.password": password, "ssl.ca.location": trusted}
        found[files.librdkafka_client(user)] = format_properties({**both, **librdkafka})
    return found


def _write_all(directory: Path, contents: Mapping[Path, str | bytes]) -> None:
    """Beside its place first, so that it is there as a whole or not at all."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    lead = f".{directory.name}-"
    beside = Path(tempfile.mkdtemp(prefix=lead, dir=directory.parent))  # Of mode 0700.
    try:
        for path, content in contents.items():
            write_private(beside / path.relative_to(directory), content)
        beside.rename(directory)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _refuse_present(directory: Path) -> None:
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise CommandError(
            f"{directory} is there already, and keys that are in use are not written over. "
            "Choose another directory, or remove it first."
        )


def _refuse_names(users: Sequence[str], hosts: Sequence[str]) -> None:
    for user in users:
        if not _USER.fullmatch(user) or user in _TAKEN or user.endswith(".librdkafka"):
            raise CommandError(
                f"--users: {user!r} cannot be a user here. Write letters, digits, dots, dashes and "
                f"underscores, and none of {', '.join(sorted(_TAKEN))}."
            )
    if len(set(users)) != len(users):
        raise CommandError("--users: a name is given twice.")
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise CommandError(f"--hosts: {host!r} is neither a name nor an address.")
