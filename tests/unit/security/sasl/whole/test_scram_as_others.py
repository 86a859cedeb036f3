"""Our SCRAM with Kafka's own classes and with kafka-python, each on the other side."""

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.net.sasl.scram import ScramClient as ClientOfKafkaPython
from tests.support.apache_kafka import CURRENT
from tests.support.java import compiled
from tests.support.outside import needs

from penstock.security.principals import Principal
from penstock.security.sasl.outcome import Authenticated, Challenge, SaslRefused
from penstock.security.sasl.scram import HASHES, ScramCredential
from penstock.security.sasl.scram_client import ScramClient
from penstock.security.sasl.scram_server import ScramServer, ScramUsers, TokenLogin

SOURCE = Path(__file__).with_name("Scram.java")
SALT = b"a salt of sixteen"
NAME, PASSWORD = "us,er=1", "p w,=ord"


class Java:
    """The Java program, asked line by line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, *words: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\t".join(words) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the Java program ended"
        return answer.rstrip("\n")

    def token(self, *words: str) -> bytes:
        answer = self.ask(*words)
        assert not answer.startswith("!"), answer
        return base64.b64decode(answer)


@pytest.fixture(scope="module")
def java() -> Iterator[Java]:
    class_path = compiled(SOURCE, needs(CURRENT))
    command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", class_path, "Scram"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield Java(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(120) == 0


def credential(mechanism: str) -> ScramCredential:
    return ScramCredential.from_password(mechanism, PASSWORD, salt=SALT, iterations=4100)


def our_server(mechanism: str) -> ScramServer:
    login = TokenLogin(
        credential=credential(mechanism), owner=Principal("User", "owner"), expires_ms=5
    )
    known = ScramUsers(
        credential={NAME: credential(mechanism)}.get, token={"token": login}.get, decoy_key=b"k"
    )
    return ScramServer(mechanism, known, nonce="from-us")


def b64(token: bytes) -> str:
    return base64.b64encode(token).decode()


@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize(("name", "is_token"), [(NAME, False), ("token", True)])
def test_kafkas_client_comes_in_to_our_server(
    java: Java, mechanism: str, name: str, is_token: bool
) -> None:
    side = our_server(mechanism)
    first = java.token("client", mechanism, name, PASSWORD, str(is_token).lower())
    challenge = side.step(first)
    assert isinstance(challenge, Challenge)
    outcome = side.step(java.token("c", b64(challenge.token)))
    assert isinstance(outcome, Authenticated)
    assert outcome.principal.name == ("owner" if is_token else NAME)
    assert java.ask("c", b64(outcome.token)) == "complete"


@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize(("name", "is_token"), [(NAME, False), ("token", True)])
def test_our_client_comes_in_to_kafkas_server_with_our_credential(
    java: Java, mechanism: str, name: str, is_token: bool
) -> None:
    owner = "owner" if is_token else "-"
    java.ask("server", mechanism, name, credential(mechanism).text(), owner)
    client = ScramClient(mechanism, name, PASSWORD, nonce="from-us", is_token=is_token)
    challenge = java.token("s", b64(client.first()))
    client.verify(java.token("s", b64(client.final(challenge))))
    assert java.ask("who") == (owner if is_token else name)


@pytest.mark.kafka
def test_each_side_refuses_the_other_with_a_wrong_password(java: Java) -> None:
    mechanism = "SCRAM-SHA-256"
    java.ask("server", mechanism, NAME, credential(mechanism).text(), "-")
    client = ScramClient(mechanism, NAME, "wrong", nonce="from-us")
    challenge = java.token("s", b64(client.first()))
    assert java.ask("s", b64(client.final(challenge))).startswith("!")

    side = our_server(mechanism)
    challenge_of_ours = side.step(java.token("client", mechanism, NAME, "wrong", "false"))
    with pytest.raises(SaslRefused, match="Invalid client credentials"):
        side.step(java.token("c", b64(challenge_of_ours.token)))


@pytest.mark.parametrize("mechanism", HASHES)
def test_kafka_pythons_client_comes_in(mechanism: str) -> None:
    side = our_server(mechanism)
    client = ClientOfKafkaPython(NAME.replace("=", "=3D").replace(",", "=2C"), PASSWORD, mechanism)
    challenge = side.step(client.first_message())
    assert isinstance(challenge, Challenge)
    client.process_server_first_message(challenge.token)
    outcome = side.step(client.final_message())
    assert isinstance(outcome, Authenticated)
    client.process_server_final_message(outcome.token)
    assert outcome.principal == Principal("User", NAME)
