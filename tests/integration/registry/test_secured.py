"""Two registries with https and passwords: clients that know both come in, and writes go on."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.broker import BrokerProcess
from tests.support.certificates import Certificates, make_certificates
from tests.support.processes import HOST, free_port
from tests.support.registry import RegistryProcess
from tests.support.waiting import eventually

pytest.importorskip("authlib")

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

NUMBERS = itertools.count()


class Secured:
    """A registry with a plain and a TLS listener."""

    def __init__(self, directory: Path, bootstrap: str, made: Certificates) -> None:
        self.port = free_port()
        users = directory / "users.properties"
        directory.mkdir(parents=True)
        users.write_text("alice: secret,developer\nmallory: guess,visitor\n")
        settings = {
            "kafkastore.topic": "_secured",
            "schema.registry.group.id": "secured",
            "ssl.keystore.location": str(made.server_both),
            "ssl.keystore.type": "PEM",
            "ssl.truststore.location": str(made.ca),
            "ssl.truststore.type": "PEM",
            "inter.instance.protocol": "https",
            "authentication.method": "BASIC",
            "authentication.users.file": str(users),
            "authentication.roles": "admin,developer",
        }
        self.process = RegistryProcess(directory / "registry", bootstrap, settings)
        self.process.settings["listeners"] += f",https://{HOST}:{self.port}"

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def pair(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Secured]]:
    directory = tmp_path_factory.mktemp("secured")
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with BrokerProcess(directory / "broker", settings) as broker:
        broker.start()
        both = [Secured(directory / name, broker.address, certificates) for name in ("a", "b")]
        with both[0].process, both[1].process:
            for one in both:
                one.process.start()
            eventually(lambda: all("The leader is https" in one.process.log for one in both))
            yield both
            for one in both:
                assert one.process.tracebacks() == {}


def schema() -> Schema:
    text = json.dumps({"type": "enum", "name": f"E{next(NUMBERS)}", "symbols": ["A"]})
    return Schema(text, "AVRO")


def test_each_takes_writes_over_tls_with_a_password(
    pair: list[Secured], certificates: Certificates
) -> None:
    ids = []
    for one in pair:
        client = SchemaRegistryClient(
            {
                "url": one.url,
                "ssl.ca.location": str(certificates.ca),
                "basic.auth.user.info": "alice:secret",
            }
        )
        ids.append(client.register_schema("orders", schema(), normalize_schemas=True))
        client.set_compatibility("orders", "NONE")
    assert sorted(ids) == [1, 2]


def test_others_are_refused(pair: list[Secured], certificates: Certificates) -> None:
    import ssl

    trusted = ssl.create_default_context(cafile=str(certificates.ca))
    with httpx.Client(base_url=pair[0].url, verify=trusted) as client:
        assert client.get("/subjects").status_code == 401
        assert client.get("/subjects", auth=("alice", "guess")).status_code == 401
        assert client.get("/subjects", auth=("mallory", "guess")).status_code == 403
        assert client.get("/subjects", auth=("alice", "secret")).status_code == 200
        assert client.get("/-/ready").json() == {"status": "ready"}
    stranger = ssl.create_default_context(cafile=str(certificates.stranger_ca))
    with (
        httpx.Client(base_url=pair[0].url, verify=stranger) as client,
        pytest.raises(httpx.ConnectError, match="certificate"),
    ):
        client.get("/subjects")


def test_https_without_a_key_is_told(tmp_path: Path) -> None:
    settings = {"listeners": f"https://{HOST}:0"}
    with RegistryProcess(tmp_path, f"{HOST}:1", settings) as registry:
        registry.launch()
        assert registry.wait() == 1
    assert "needs ssl.keystore.location" in registry.log
    assert registry.tracebacks() == {}
