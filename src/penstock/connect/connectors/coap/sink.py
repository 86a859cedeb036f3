"""CoapSinkConnector: records are sent to CoAP resources, at least once.

Requests are confirmable: a device answers each before the next is sent, so what `put` has taken is
there. A record that a device refuses is put aside, or ends the task.
"""

from penstock.connect.connectors.coap.client import LIBRARIES, CoapClient, wrong_uri
from penstock.connect.connectors.wiring.payloads import each_or_aside, filled, payload_of
from penstock.connect.connectors.wiring.reach import ServerReach
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SinkTask
from penstock.connect.plugins.declared import DeclaredSink
from penstock.connect.plugins.validators import AtLeast, Judged, OneOfWords
from penstock.connect.records import SinkRecord

_CONFIG = ConfigDef(
    ConfigEntry(
        "coap.uri",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The resource of a record, coap://host/path; ${topic} and ${key} are the record's.",
        validator=Judged(wrong_uri, "the URI of a resource"),
    ),
    ConfigEntry(
        "coap.method",
        ConfigType.STRING,
        "PUT",
        Importance.HIGH,
        "PUT or POST.",
        validator=OneOfWords(("PUT", "POST"), any_case=True),
    ),
    ConfigEntry(
        "coap.content.format",
        ConfigType.INT,
        None,
        Importance.MEDIUM,
        "The number of the content format, such as 0 for text and 50 for JSON. Without it, none.",
        validator=Judged(
            lambda value: None if value is None or 0 <= value <= 65_535 else "it is no format",
            "[0,...,65535]",
        ),
    ),
    ConfigEntry(
        "coap.timeout.ms",
        ConfigType.INT,
        100_000,
        Importance.LOW,
        "How long a device may be silent before the task fails. CoAP itself repeats for 93 s.",
        validator=AtLeast(100),
    ),
)


class CoapSinkTask(SinkTask):
    """One request after the other."""

    def __init__(self) -> None:
        self._client: CoapClient | None = None

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._template, self._method = parsed["coap.uri"], parsed["coap.method"].upper()
        self._format = parsed["coap.content.format"]
        timeout_s = parsed["coap.timeout.ms"] / 1000
        self._reach = ServerReach(self._template, timeout_s)
        self._client = CoapClient(timeout_s=timeout_s)
        self._client.open()

    def put(self, records: list[SinkRecord]) -> None:
        each_or_aside(self.context, records, self._send)

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def _send(self, record: SinkRecord) -> None:
        assert self._client is not None
        uri = filled(self._template, record)
        payload = payload_of(record.value_schema, record.value) or b""
        try:
            self._client.send(self._method, uri, payload, self._format)
        except (OSError, TimeoutError) as error:
            raise self._reach.failed(error) from error
        self._reach.answered()


class CoapSinkConnector(DeclaredSink):
    """Each task sends what is in its partitions."""

    CONFIG = _CONFIG
    TASK = CoapSinkTask
    libraries = LIBRARIES
