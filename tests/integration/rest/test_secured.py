"""The REST proxy behind TLS and passwords, over HTTP and over WebSockets."""

import asyncio
import base64
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.broker import BrokerProcess
from tests.support.certificates import Certificates, make_certificates
from tests.support.processes import HOST, free_port
from tests.support.rest import RestProcess
from tests.support.token_issuer import Issuer
from tests.support.waiting import eventually
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

PATH = "/v3/clusters"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def port(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where a proxy listens with TLS; it has a plain listener beside it."""
    directory = tmp_path_factory.mktemp("secured")
    users = directory / "users.properties"
    users.write_text("alice: secret,developer\nmallory: guess,visitor\n")
    settings = {
        "ssl.keystore.location": str(certificates.server_both),
        "ssl.keystore.type": "PEM",
        "authentication.method": "BASIC",
        "authentication.users.file": str(users),
        "authentication.roles": "admin,developer",
    }
    with BrokerProcess(directory / "broker") as broker:
        broker.start()
        with RestProcess(directory / "rest", broker.address, settings) as rest:
            secured = free_port()
            rest.settings["listeners"] += f",https://{HOST}:{secured}"
            rest.start()
            yield secured
            assert rest.tracebacks() == {}


@pytest.fixture
def trusting(certificates: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates.ca))


def test_who_has_the_password_and_a_role_comes_in(port: int, trusting: ssl.SSLContext) -> None:
    with httpx.Client(base_url=f"https://{HOST}:{port}", verify=trusting) as client:
        for path in (PATH, "/topics", "/openapi.json"):
            assert client.get(path).status_code == 401, path
        assert client.get(PATH, auth=("alice", "guess")).status_code == 401
        assert client.get(PATH, auth=("mallory", "guess")).status_code == 403
        found = client.get(PATH, auth=("alice", "secret"))
        assert found.status_code == 200
        assert found.json()["data"][0]["metadata"]["self"].startswith(f"https://{HOST}:{port}/")
        assert client.get("/-/ready").status_code == 200


def test_a_websocket_asks_for_the_password_too(port: int, trusting: ssl.SSLContext) -> None:
    with httpx.Client(
        base_url=f"https://{HOST}:{port}", verify=trusting, auth=("alice", "secret")
    ) as client:
        cluster = client.get(PATH).json()["data"][0]["cluster_id"]
        made = client.post(
            f"{PATH}/{cluster}/topics", json={"topic_name": "watched", "partitions_count": 1}
        )
        assert made.status_code == 201, made.text
    url = f"wss://{HOST}:{port}{PATH}/{cluster}/topics/watched/records:stream"
    word = base64.b64encode(b"alice:secret").decode()
    with pytest.raises(InvalidStatus, match="403"):
        asyncio.run(open_and_close(url, trusting, {}))
    asyncio.run(open_and_close(url, trusting, {"Authorization": f"Basic {word}"}))


async def open_and_close(url: str, trusting: ssl.SSLContext, headers: dict[str, str]) -> None:
    """In one thread: two threads on one TLS connection, as the library has them elsewhere, can
    lose what they read, now and then."""
    async with connect(url, ssl=trusting, additional_headers=headers):
        pass


def test_bearer_tokens_are_believed_if_a_known_key_signed_them(tmp_path: Path) -> None:
    ours, strangers = (Issuer(name, int(time.time())) for name in ("ours", "ours"))
    keys = tmp_path / "keys.json"
    keys.write_text(ours.keys())
    settings = {
        "authentication.method": "BEARER",
        "oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "oauthbearer.expected.audience": "rest",
    }
    with (
        BrokerProcess(tmp_path / "broker") as broker,
        RestProcess(tmp_path / "rest", broker.address, settings) as rest,
        httpx.Client(base_url=rest.url) as client,
    ):
        broker.start()
        rest.start()

        def status(token: str) -> int:
            return client.get(PATH, headers={"Authorization": f"Bearer {token}"}).status_code

        eventually(lambda: status(ours.token(aud="rest")) == 200, timeout_s=120, what="the keys")
        refused = [
            ours.token(aud="others"),
            strangers.token(aud="rest"),
            ours.token(),
            "x",
            "x.y.z",
        ]
        assert [status(token) for token in refused] == [401] * len(refused)
        asked = client.get(PATH)
        assert (asked.status_code, asked.headers["www-authenticate"]) == (
            401,
            'Bearer realm="KafkaRest"',
        )
        assert rest.tracebacks() == {}


def test_https_without_a_key_is_told(tmp_path: Path) -> None:
    rest = RestProcess(tmp_path / "rest", f"{HOST}:1")
    rest.settings["listeners"] = f"https://{HOST}:{free_port()}"
    with rest:
        rest.launch()
        assert rest.process is not None
        assert rest.process.wait(60) == 1
        assert "Traceback" not in rest.log
