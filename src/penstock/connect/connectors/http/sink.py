"""HttpSinkConnector: records are sent to an HTTP API, at least once.

An answer of success is what counts: offsets are committed behind records that have it. A request
that failed in a way that may pass is made again; one that the server refuses is put aside, record
by record, or ends the task.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from urllib.parse import quote

from penstock.connect.connectors.http.calls import (
    CALLING,
    HttpAnswer,
    HttpCaller,
    ServerAway,
    check_calling,
    wrong_url,
)
from penstock.connect.connectors.wiring.payloads import payload_of, put_aside, text_of
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, SinkTask
from penstock.connect.plugins.declared import DeclaredSink
from penstock.connect.plugins.validators import AtLeast, Judged, OneOfWords
from penstock.connect.records import SinkRecord
from penstock.records.topic_partition import TopicPartition

_BODY_BYTES_MAX = 1 << 20  # Of an answer, which is only looked at when it is an error.
_CONFIG = CALLING + ConfigDef(
    ConfigEntry(
        "http.api.url",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "Where records go; ${topic} and ${key} are the record's.",
        validator=Judged(wrong_url, "a URL"),
    ),
    ConfigEntry(
        "request.method",
        ConfigType.STRING,
        "POST",
        Importance.HIGH,
        "The method of requests.",
        validator=OneOfWords(("POST", "PUT", "PATCH", "DELETE"), any_case=True),
    ),
    ConfigEntry(
        "request.body.format",
        ConfigType.STRING,
        "json",
        Importance.MEDIUM,
        "json: every value becomes JSON. string: bytes and texts go as they are.",
        validator=OneOfWords(("json", "string"), any_case=True),
    ),
    ConfigEntry(
        "batch.max.size",
        ConfigType.INT,
        1,
        Importance.HIGH,
        "How many records of one URL a request has, at most.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "batch.json.as.array",
        ConfigType.BOOLEAN,
        False,
        Importance.MEDIUM,
        "Whether a request of format json is an array also where batch.max.size is 1.",
    ),
    ConfigEntry("batch.prefix", ConfigType.STRING, "", Importance.LOW, "Before a batch of strings"),
    ConfigEntry("batch.suffix", ConfigType.STRING, "", Importance.LOW, "Behind a batch of strings"),
    ConfigEntry(
        "batch.separator", ConfigType.STRING, ",", Importance.LOW, "Between strings of a batch."
    ),
    ConfigEntry(
        "behavior.on.null.values",
        ConfigType.STRING,
        "ignore",
        Importance.MEDIUM,
        "What a record without a value is: nothing, a DELETE of its URL, or an error.",
        validator=OneOfWords(("ignore", "delete", "fail"), any_case=True),
    ),
)
Target = tuple[str, str]  # Method and URL.


class HttpSinkTask(SinkTask):
    """Sends batches; remembers how far a `put` came that is made again."""

    def __init__(self) -> None:
        self._caller: HttpCaller | None = None
        self._failures = 0
        self._done: dict[TopicPartition, int] = {}  # The next offset that no answer is there for.
        self._aside: set[tuple[TopicPartition, int]] = set()  # Reported in this `put` already.

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._url, self._method = parsed["http.api.url"], parsed["request.method"].upper()
        self._is_json = parsed["request.body.format"].lower() == "json"
        self._size, self._is_array = parsed["batch.max.size"], parsed["batch.json.as.array"]
        self._marks = [parsed[f"batch.{one}"].encode() for one in ("prefix", "separator", "suffix")]
        self._on_null = parsed["behavior.on.null.values"].lower()
        self._caller = HttpCaller(parsed, body_bytes_max=_BODY_BYTES_MAX)

    def put(self, records: list[SinkRecord]) -> None:
        left = [
            one
            for one in records
            if one.offset >= self._done.get(_place(one), 0)
            and (_place(one), one.offset) not in self._aside
        ]
        for target, batch in self._batches(left):
            self._deliver(target, batch)
            self._done.update({_place(one): one.offset + 1 for one in batch})
        self._done.clear()
        self._aside.clear()

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        for one in partitions:
            self._done.pop(one, None)

    def stop(self) -> None:
        if self._caller is not None:
            self._caller.close()

    def _batches(self, records: list[SinkRecord]) -> Iterator[tuple[Target, list[SinkRecord]]]:
        """Neighbours with one target, so that the order of records stays."""
        aimed = ((self._aimed(one), one) for one in records)
        found = ((target, one) for target, one in aimed if target is not None)
        for target, group in groupby(found, key=lambda pair: pair[0]):
            row = [one for _, one in group]
            size = self._size if target[0] == self._method else 1
            for first in range(0, len(row), size):
                yield target, row[first : first + size]

    def _aimed(self, record: SinkRecord) -> Target | None:
        """Where a record goes; None: nowhere."""
        try:
            if record.value is not None:
                return self._method, self._url_of(record)
            if self._on_null == "fail":
                raise DataError("the record has no value")
            return None if self._on_null == "ignore" else ("DELETE", self._url_of(record))
        except DataError as error:
            self._put_aside(record, error)
            return None

    def _url_of(self, record: SinkRecord) -> str:
        url: str = self._url.replace("${topic}", quote(record.topic, safe=""))
        if "${key}" not in url:
            return url
        key = text_of(record.key_schema, record.key)
        if not key:
            raise DataError("the record has no key")
        return url.replace("${key}", quote(key, safe=""))

    def _deliver(self, target: Target, batch: list[SinkRecord]) -> None:
        assert self._caller is not None
        try:
            bodies = [self._body(one) for one in batch]
        except DataError as error:
            self._split_or_aside(target, batch, error)
            return
        try:
            answer = self._caller.call(*target, self._joined(bodies), self._content_type)
        except ServerAway as error:
            self._try_later(str(error))
        else:
            self._judge(target, batch, answer)

    def _judge(self, target: Target, batch: list[SinkRecord], answer: HttpAnswer) -> None:
        assert self._caller is not None
        if answer.is_success:
            self._failures = 0
        elif answer.status in self._caller.retried:
            self._try_later(f"{' '.join(target)} answers {answer.shown}")
        else:
            refused = DataError(f"{' '.join(target)} answers {answer.shown}")
            self._split_or_aside(target, batch, refused)

    def _split_or_aside(self, target: Target, batch: list[SinkRecord], error: DataError) -> None:
        """One record of a batch may be why it is refused: each is sent alone."""
        if len(batch) == 1:
            self._put_aside(batch[0], error)
            return
        for one in batch:
            self._deliver(target, [one])
            self._done[_place(one)] = one.offset + 1

    def _put_aside(self, record: SinkRecord, error: DataError) -> None:
        put_aside(self.context, record, error)
        self._aside.add((_place(record), record.offset))

    def _try_later(self, reason: str) -> None:
        assert self._caller is not None
        self._failures += 1
        if self._failures > self._caller.retries_max:
            raise ConnectError(f"Given up after {self._caller.retries_max} retries: {reason}")
        self.context.set_timeout_ms(self._caller.backoff_ms)
        raise RetriableConnectError(reason)

    @property
    def _content_type(self) -> str:
        return "application/json" if self._is_json else "text/plain; charset=utf-8"

    def _body(self, record: SinkRecord) -> bytes | None:
        if record.value is None:
            return None
        if self._is_json and isinstance(record.value, bytes | bytearray | memoryview):
            raise DataError("bytes are no JSON: use request.body.format=string")
        if self._is_json and isinstance(record.value, str):
            return json.dumps(record.value, ensure_ascii=False).encode()
        return payload_of(record.value_schema, record.value)

    def _joined(self, bodies: list[bytes | None]) -> bytes | None:
        there = [one for one in bodies if one is not None]
        if not there:
            return None  # Of a DELETE.
        if self._is_json:
            is_array = self._is_array or self._size > 1
            return b"[" + b",".join(there) + b"]" if is_array else there[0]
        before, between, behind = self._marks
        return bytes(before + between.join(there) + behind)


def _place(record: SinkRecord) -> TopicPartition:
    return TopicPartition(
        record.original_topic or record.topic,
        record.partition or 0 if record.original_partition is None else record.original_partition,
    )


class HttpSinkConnector(DeclaredSink):
    """Each task sends what is in its partitions."""

    CONFIG = _CONFIG
    TASK = HttpSinkTask

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return check_calling(_CONFIG.validate(config), config)
