"""A connection to an MQTT server that comes back by itself, by paho-mqtt.

paho's thread reads and reconnects. What it hears is put into a queue, with the number of the
connection it came over; whoever asks after a failure, or after the server was away for too long,
gets the error.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.connect.connectors.mqtt.settings import MqttServer, MqttSettings
from penstock.connect.errors.kinds import ConnectError

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessageInfo

_QUEUE_MAX = 10_000
_NEVER_EXPIRES = 0xFFFFFFFF
_REFUSED = 0x80  # Reason codes from here on are failures.
_PACKET_SIGNS = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttMessage:
    """A message as it came."""

    connection: int
    mid: int
    topic: str
    payload: bytes
    qos: int
    retained: bool
    duplicate: bool


class MqttConnection:
    """One session with a server."""

    def __init__(
        self,
        settings: MqttSettings,
        *,
        subscriptions: Sequence[tuple[str, int]] = (),
        keeps_session: bool = False,
    ) -> None:
        self._settings = settings
        self._subscriptions = list(subscriptions)
        self._keeps_session = keeps_session
        self._heard: queue.Queue[MqttMessage] = queue.Queue(_QUEUE_MAX)
        self._up = threading.Event()
        self._closing = threading.Event()
        self._failure: str | None = None
        self._lost_s = time.monotonic()
        self.connection = 0
        self._client = self._made()

    @property
    def is_up(self) -> bool:
        """Whether the server has taken us, and all subscriptions."""
        return self._up.is_set()

    def open(self) -> None:
        """Connect to the first server that answers; ConnectError tells why none did."""
        told = []
        for server in self._settings.servers:
            reason = self._try(server)
            if reason is None:
                return
            told.append(reason)
        self.close()
        raise ConnectError(f"No MQTT server can be used: {'; '.join(told)}")

    def messages(self, count_max: int, wait_s: float) -> list[MqttMessage]:
        """What has come, after a short wait; old connections' messages come again, and are left."""
        self.check()
        found: list[MqttMessage] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._heard.get(timeout=wait_s))
            while len(found) < count_max:
                found.append(self._heard.get_nowait())
        return [one for one in found if one.qos == 0 or one.connection == self.connection]

    def acknowledge(self, message_id: int, qos: int) -> None:
        """The server need not send a message again."""
        self._client.ack(message_id, qos)

    def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool) -> "MQTTMessageInfo":
        """Send; the answer tells when the server has it."""
        return self._client.publish(topic, payload, qos=qos, retain=retain)

    def check(self) -> None:
        """Raise what went wrong, if it does not pass by itself."""
        if self._failure is not None:
            raise ConnectError(self._failure)
        away_s = 0.0 if self.is_up else time.monotonic() - self._lost_s
        if away_s > self._settings.timeout_s:
            raise ConnectError(f"The MQTT server is out of reach since {away_s:.0f} s.")

    def wait_briefly(self, seconds: float) -> None:
        """Until the connection ends, or so long."""
        self._closing.wait(seconds)

    def close(self) -> None:
        """Say goodbye; a session that is kept stays at the server."""
        self._closing.set()
        self._client.disconnect()
        self._client.loop_stop()

    # ----------------------------------------------------------------------------------------------

    def _made(self) -> "Client":
        from paho.mqtt.client import Client, MQTTv5, MQTTv311
        from paho.mqtt.enums import CallbackAPIVersion

        is_five = self._settings.version == "5"
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=self._settings.client_id,
            clean_session=None if is_five else not self._keeps_session,
            protocol=MQTTv5 if is_five else MQTTv311,
            manual_ack=True,
        )
        if self._settings.username:
            client.username_pw_set(self._settings.username, self._settings.password)
        client.reconnect_delay_set(1, 10)
        client.connect_timeout = self._settings.timeout_s
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_subscribe, client.on_message = self._on_subscribe, self._on_message
        return client

    def _try(self, server: MqttServer) -> str | None:
        """Why a server cannot be used; None: it can."""
        name = f"{server.host}:{server.port}"
        self._failure = None
        if server.is_secure:
            self._client = self._made()
            self._client.tls_set_context(self._settings.tls)
        try:
            self._client.connect(
                server.host, server.port, self._settings.keepalive_s, **self._start_options()
            )
        except OSError as error:
            return f"{name}: {error}"
        self._client.loop_start()
        give_up_s = time.monotonic() + self._settings.timeout_s
        while time.monotonic() < give_up_s and self._failure is None:
            if self._up.wait(0.05):
                return None
        self._client.loop_stop()
        return f"{name}: {self._failure or 'no answer'}"

    def _start_options(self) -> dict[str, Any]:
        if self._settings.version != "5":
            return {}
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        if self._keeps_session:
            properties.SessionExpiryInterval = _NEVER_EXPIRES
        return {"clean_start": not self._keeps_session, "properties": properties}

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, more: Any) -> None:
        if reason.is_failure:
            self._failure = f"The MQTT server refused the connection: {reason}"
            client.disconnect()
            return
        self.connection += 1
        if self._subscriptions:
            client.subscribe(self._subscriptions)
        else:
            self._up.set()

    def _on_subscribe(self, client: Any, data: Any, mid: int, codes: Any, more: Any) -> None:
        pairs = zip(self._subscriptions, codes, strict=True)
        refused = [f"{topic}: {code}" for (topic, _), code in pairs if code.value >= _REFUSED]
        if refused:
            self._failure = f"The MQTT server refused subscriptions: {'; '.join(refused)}"
            return
        self._up.set()

    def _on_disconnect(self, client: Any, data: Any, flags: Any, reason: Any, more: Any) -> None:
        self._up.clear()
        self._lost_s = time.monotonic()

    def _on_message(self, client: Any, data: Any, message: Any) -> None:
        heard = MqttMessage(
            connection=self.connection,
            mid=message.mid,
            topic=message.topic,
            payload=bytes(message.payload),
            qos=message.qos,
            retained=bool(message.retain),
            duplicate=bool(message.dup),
        )
        while not self._closing.is_set():  # A full queue holds the server back.
            try:
                self._heard.put(heard, timeout=0.2)
            except queue.Full:
                continue
            return


def topic_filter_error(topic: str) -> str | None:
    """What is wrong with a filter of a subscription; None: nothing."""
    parts = topic.split("/")
    if not topic or len(topic.encode()) > _PACKET_SIGNS or "\0" in topic:
        return "an MQTT topic has 1 to 65535 bytes, and no null character"
    if any("#" in part and (part != "#" or at < len(parts) - 1) for at, part in enumerate(parts)):
        return f"{topic}: # stands alone, at the end"
    if any("+" in part and part != "+" for part in parts):
        return f"{topic}: + stands alone between slashes"
    return None


def topic_name_error(topic: str) -> str | None:
    """What is wrong with a topic that is published to; None: nothing."""
    if "#" in topic or "+" in topic:
        return f"{topic}: a topic to publish to has no # and no +"
    return topic_filter_error(topic)
