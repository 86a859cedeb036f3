"""MQTT connectors against a real mosquitto: nothing lost through crashes and restarts."""

import threading
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from tests.support.certificates import make_certificates
from tests.support.mosquitto import Mosquitto, mosquitto
from tests.support.processes import HOST, free_port
from tests.support.waiting import eventually

from penstock.connect.connectors.mqtt.sink import MqttSinkConnector
from penstock.connect.connectors.mqtt.source import MqttSourceConnector
from penstock.connect.errors.kinds import ConnectError, DataError
from penstock.connect.testing import SinkRun, SourceRun

BYTES = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mosquitto]:
    with mosquitto(tmp_path_factory.mktemp("mosquitto")) as running:
        yield running


class Phone:
    """Somebody else at the server, who publishes and hears."""

    def __init__(self, server: Mosquitto, hears: str = "") -> None:
        self.heard: list[tuple[str, bytes]] = []
        self._lock = threading.Lock()
        self._client = paho.Client(CallbackAPIVersion.VERSION2)
        self._client.on_message = self._on_message
        self._client.connect(HOST, server.port)
        self._client.loop_start()
        eventually(self._client.is_connected)
        if hears:
            ready = threading.Event()
            self._client.on_subscribe = lambda *_: ready.set()
            self._client.subscribe(hears, 1)
            assert ready.wait(60)

    def _on_message(self, client: object, data: object, message: paho.MQTTMessage) -> None:
        with self._lock:
            self.heard.append((message.topic, bytes(message.payload)))

    def say(self, topic: str, texts: list[str], qos: int = 1) -> None:
        for one in [self._client.publish(topic, text, qos=qos) for text in texts]:
            one.wait_for_publish(60)

    def __enter__(self) -> "Phone":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def config(server: Mosquitto, name: str, **more: str) -> dict[str, str]:
    return {
        "name": name,
        "mqtt.server.uri": server.uri,
        "mqtt.topics": f"{name}/#",
        "kafka.topic": "t",
        **more,
    }


def test_crashes_at_any_step_lose_no_message(server: Mosquitto) -> None:
    texts = [f"m{n}" for n in range(60)]
    given = config(server, "crashes")
    with SourceRun(MqttSourceConnector, given, converters=BYTES) as run, Phone(server) as phone:
        phone.say("crashes/a", texts[:30])
        eventually(run.poll)  # Polled and lost: they come again.
        run.crash()
        run.run_until(lambda: len(run.values("t")) >= 20)
        run.crash()
        run.stop()
        phone.say("crashes/a", texts[30:], qos=2)  # While nobody is there.
        run.start()
        run.run_until(lambda: set(run.values("t")) == set(texts))
        assert set(run.keys("t")) == {"crashes/a"}
        first = dict(run.topics["t"][0].headers)
        assert set(first) == {"mqtt.message.id", "mqtt.qos", "mqtt.retained", "mqtt.duplicate"}
        assert run.offsets == []


def test_what_was_acknowledged_does_not_come_again(server: Mosquitto) -> None:
    given = config(server, "acked")
    with SourceRun(MqttSourceConnector, given, converters=BYTES) as run, Phone(server) as phone:
        phone.say("acked/a", ["one", "two"])
        run.run_until(lambda: len(run.values("t")) == 2)
        run.restart()
        phone.say("acked/a", ["three"])
        run.run_until(lambda: "three" in run.values("t"))
        assert run.values("t") == ["one", "two", "three"]


def test_a_server_that_goes_away_and_returns_is_read_on(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as own:
        given = config(own, "away")
        with SourceRun(MqttSourceConnector, given, converters=BYTES) as run:
            with Phone(own) as phone:
                phone.say("away/a", ["before"])
            polled = eventually(run.poll)
            own.restart()
            run.run_until(lambda: run.task._connection.connection == 2)
            with Phone(own) as phone:
                phone.say("away/a", ["after"])
            run.run_until(lambda: "after" in run.values("t"))
            assert [one.value for one in polled] == [b"before"]
            assert set(run.values("t")) == {"before", "after"}
            run.restart()  # What was acknowledged on the new connection is not there again.
            assert not run.poll()


def test_several_tasks_share_the_messages(server: Mosquitto) -> None:
    given = config(server, "shared", **{"mqtt.version": "5", "tasks.max": "2"})
    runs = [
        SourceRun(MqttSourceConnector, given, task=n, tasks_max=2, converters=BYTES)
        for n in range(2)
    ]
    texts = [f"m{n}" for n in range(40)]
    with runs[0] as one, runs[1] as other, Phone(server) as phone:
        phone.say("shared/a", texts)

        def all_there() -> bool:
            for run in runs:
                run.poll()
                run.commit()
            return len(one.values("t")) + len(other.values("t")) >= len(texts)

        eventually(all_there)
        assert sorted(one.values("t") + other.values("t")) == sorted(texts)
        assert one.values("t") and other.values("t")


def test_a_server_that_is_not_there_or_refuses_is_told(server: Mosquitto, tmp_path: Path) -> None:
    nowhere = config(server, "x", **{"mqtt.server.uri": f"tcp://{HOST}:{free_port()}"})
    with pytest.raises(ConnectError, match="refused"):
        SourceRun(MqttSourceConnector, nowhere).start()
    second = {**nowhere, "mqtt.server.uri": f"{nowhere['mqtt.server.uri']},{server.uri}"}
    with SourceRun(MqttSourceConnector, second) as run:
        assert run.poll() == []
    refused = pytest.raises(ConnectError, match=r"[Nn]ot authori[sz]ed")
    with mosquitto(tmp_path, allow_anonymous="false") as strict, refused:
        SourceRun(MqttSourceConnector, config(strict, "x")).start()


def test_it_speaks_tls_to_a_server_it_trusts(tmp_path: Path) -> None:
    files = make_certificates(tmp_path / "certificates")
    secured = {"certfile": str(files.server), "keyfile": str(files.server_key)}
    with mosquitto(tmp_path / "server", **secured) as own:
        given = config(own, "tls", **{"mqtt.server.uri": f"ssl://{own.address}"})
        trusting = {**given, "mqtt.ssl.trust.store.path": str(files.ca)}
        with SourceRun(MqttSourceConnector, trusting) as run:
            assert run.poll() == []
        doubting = {**given, "mqtt.ssl.trust.store.path": str(files.stranger_ca)}
        with pytest.raises(ConnectError, match="certificate"):
            SourceRun(MqttSourceConnector, doubting).start()


def test_a_sink_publishes_by_topic_and_key(server: Mosquitto) -> None:
    given = {"mqtt.server.uri": server.uri, "mqtt.topic": "out/${topic}/${key}", "mqtt.qos": "1"}
    tolerant = {**given, "errors.tolerance": "all"}
    with Phone(server, "out/#") as phone, SinkRun(MqttSinkConnector, tolerant) as run:
        run.produce("t", b"on", key=b"lamp")
        run.produce("t", b"no key")
        run.produce("t", b"bad", key=b"a/#")
        run.produce("t", None, key=b"lamp")
        run.deliver()
        run.commit()
        assert run.committed == {("t", 0): 4}
        eventually(lambda: phone.heard == [("out/t/lamp", b"on"), ("out/t/lamp", b"")])
        assert [one.offset for one, _ in run.dead] == [1, 2]
    with SinkRun(MqttSinkConnector, given) as run:
        run.produce("t", b"bad", key=b"+")
        with pytest.raises(DataError, match="t-0@0"):
            run.deliver()


def uri_of(server: Mosquitto) -> dict[str, str]:
    return {"mqtt.server.uri": server.uri}


def test_a_sink_waits_for_a_server_that_is_away(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as own, SinkRun(MqttSinkConnector, uri_of(own)) as run:
        own.stop()
        eventually(lambda: not run.task._connection.is_up)
        own.start()
        with Phone(own, "t") as phone:
            run.produce("t", b"late")
            run.deliver()
            run.commit()
            eventually(lambda: phone.heard == [("t", b"late")])
