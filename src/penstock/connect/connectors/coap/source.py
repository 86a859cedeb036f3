"""CoapSourceConnector: what resources become is a record each, as well as CoAP can: best effort.

An observation tells what a resource is in the end, not each step to it: a device may leave out
states, and what is sent while the task is down is not sent again. The state of the resource is
read anew at each start.
"""

import threading

from penstock.connect.connectors.coap.client import LIBRARIES, CoapClient, CoapSample, wrong_uri
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SourceTask
from penstock.connect.plugins.declared import DeclaredSource, dealt
from penstock.connect.plugins.validators import (
    AllOf,
    AtLeast,
    DistinctItems,
    Judged,
    NonEmptyText,
)
from penstock.connect.records import Header, SourceRecord
from penstock.connect.values.schema import BYTES_SCHEMA, INT32_SCHEMA, STRING_SCHEMA

_WAIT_S = 0.2
_BATCH_MAX = 500


def _wrong_uris(uris: list[str] | None) -> str | None:
    return next(filter(None, (wrong_uri(one) for one in uris or [])), None)


_CONFIG = ConfigDef(
    ConfigEntry(
        "coap.uri",
        ConfigType.LIST,
        NO_DEFAULT,
        Importance.HIGH,
        "The resources to observe, coap://host/path, shared out among the tasks.",
        validator=AllOf((DistinctItems(), Judged(_wrong_uris, "URIs of resources"))),
    ),
    ConfigEntry(
        "kafka.topic",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The topic that records go to.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "coap.refresh.interval.ms",
        ConfigType.INT,
        60_000,
        Importance.MEDIUM,
        "How often an observation is asked for anew, and a resource without observation is asked.",
        validator=AtLeast(10),
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


class CoapSourceTask(SourceTask):
    """Observes its resources."""

    def __init__(self) -> None:
        self._client: CoapClient | None = None
        self._stopping = threading.Event()

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._topic = parsed["kafka.topic"]
        self._client = CoapClient(
            timeout_s=parsed["coap.timeout.ms"] / 1000,
            refresh_s=parsed["coap.refresh.interval.ms"] / 1000,
        )
        self._client.open()
        for uri in parsed["coap.uri"]:
            self._client.watch(uri)

    def poll(self) -> list[SourceRecord] | None:
        assert self._client is not None
        if self._stopping.is_set():
            return None
        return [self._record(one) for one in self._client.samples(_BATCH_MAX, _WAIT_S)]

    def stop(self) -> None:
        self._stopping.set()
        if self._client is not None:
            self._client.close()

    def _record(self, sample: CoapSample) -> SourceRecord:
        kind = sample.content_format
        headers = () if kind is None else (Header("coap.content.format", INT32_SCHEMA, kind),)
        return SourceRecord(
            topic=self._topic,
            key_schema=STRING_SCHEMA,
            key=sample.uri,
            value_schema=BYTES_SCHEMA,
            value=sample.payload,
            headers=headers,
            source_partition=None,
            source_offset=None,
        )


class CoapSourceConnector(DeclaredSource):
    """Resources are dealt out to the tasks."""

    CONFIG = _CONFIG
    TASK = CoapSourceTask
    libraries = LIBRARIES

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        hands = dealt(self.parsed["coap.uri"], max_tasks)
        return [{**self.config, "coap.uri": ",".join(uris)} for uris in hands]
