"""A cluster as `penstock secure init` makes it: TLS and passwords everywhere, rules for clients."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from tests.faults.deployment import BrokerNode, Deployment
from tests.support.secure_wire import SecureConnection
from tests.support.secure_zookeeper import SecureZooKeeper
from tests.support.waiting import eventually

from penstock.cli.secure_files import ADMIN, SecureFiles, make_secure_files
from penstock.client.admin import Admin
from penstock.config.properties import read_properties
from penstock.security.acls.rules import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    ResourcePattern,
)
from penstock.security.sasl.client_tokens import Credentials

CLIENT = "alice"
_RIGHTS = {
    AclResourceType.TOPIC: (AclOperation.READ, AclOperation.WRITE),
    AclResourceType.GROUP: (AclOperation.READ,),
    AclResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE,),
}


@dataclass(slots=True, kw_only=True)
class SecureDeployment(Deployment):
    """SASL_SSL to clients and between brokers, TLS to ZooKeeper, access lists there and here."""

    files: SecureFiles = field(init=False)

    def start(self) -> None:
        passwords = (f"very-secret-{number}" for number in range(10))
        self.files = make_secure_files(
            self.directory / "secure",
            users=[CLIENT],
            hosts=["127.0.0.1"],
            now=datetime.datetime.now(datetime.UTC),
            days=2,
            new_password=lambda: next(passwords),
        )
        self.client_settings = read_properties(self.files.librdkafka_client(CLIENT))
        self.admin_settings = read_properties(self.files.librdkafka_client(ADMIN))
        Deployment.start(self)
        self._allow_clients()

    def new_zookeeper(self) -> SecureZooKeeper:
        settings = read_properties(self.files.zookeeper_properties)
        alone = {name: value for name, value in settings.items() if "uorum" not in name}
        context = self.files.zookeeper_context()
        return SecureZooKeeper(self.directory / "zookeeper", alone, context)

    def prepare(self, node: BrokerNode) -> None:
        node.settings |= read_properties(self.files.broker_properties)
        node.settings["listeners"] = f"SASL_SSL://{node.address}"
        security = self.files.admin_security()
        assert security.tls is not None and isinstance(security.credentials, Credentials)
        node.connect = partial(
            SecureConnection,
            context=security.tls.context(),
            user=security.credentials.username,
            password=security.credentials.password,
        )

    def _allow_clients(self) -> None:
        rules = [
            AclBinding(
                ResourcePattern(kind, "*"),
                AccessControlEntry(f"User:{CLIENT}", "*", operation, AclPermission.ALLOW),
            )
            for kind, operations in _RIGHTS.items()
            for operation in operations
        ]
        settings: Mapping[str, str] = {"bootstrap.servers": self.bootstrap, **self.admin_settings}
        with Admin(settings) as admin:
            admin.create_acls(rules)
            wanted = len(rules)
            eventually(lambda: len(admin.describe_acls(AclBindingFilter())) == wanted)
