"""HttpSourceConnector: an API is asked for what is new, exactly once where its pages stay.

The offset is what the next request asks with, and how many records of its answer are in the topic
already. An API whose answer to the same question only grows at its end loses nothing and sends
nothing twice.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from penstock.connect.connectors.http.calls import (
    CALLING,
    HttpAnswer,
    HttpCaller,
    ServerAway,
    check_calling,
    wrong_url,
)
from penstock.connect.connectors.http.pointers import MISSING, found_at, wrong_pointer
from penstock.connect.errors.kinds import ConnectError, RetriableConnectError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, ExactlyOnceSupport, SourceTask
from penstock.connect.plugins.declared import DeclaredSource, dealt
from penstock.connect.plugins.validators import AtLeast, Judged, NonEmptyText, OneOfWords
from penstock.connect.records import SourceRecord
from penstock.connect.values.schema import STRING_SCHEMA

ENTITY, URL, OFFSET, SKIP = "entity", "url", "offset", "skip"
INCREMENTING, CHAINING, CURSOR = "SIMPLE_INCREMENTING", "CHAINING", "CURSOR_PAGINATION"
_POINTER = Judged(wrong_pointer, "a JSON pointer")
_WAIT_S = 0.2
_CONFIG = CALLING + ConfigDef(
    ConfigEntry(
        "url",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "What is asked; ${offset} is the offset and ${entityName} one of entity.names.",
        validator=Judged(wrong_url, "a URL"),
    ),
    ConfigEntry(
        "entity.names",
        ConfigType.LIST,
        [],
        Importance.MEDIUM,
        "Parts of the API that are asked one by one, and shared out among the tasks.",
    ),
    ConfigEntry(
        "topic.name.pattern",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The topic that records go to; ${entityName} is replaced.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "http.request.method",
        ConfigType.STRING,
        "GET",
        Importance.MEDIUM,
        "GET or POST.",
        validator=OneOfWords(("GET", "POST"), any_case=True),
    ),
    ConfigEntry(
        "http.request.body",
        ConfigType.STRING,
        "",
        Importance.LOW,
        "The JSON of a POST; ${offset} and ${entityName} are replaced.",
    ),
    ConfigEntry(
        "http.offset.mode",
        ConfigType.STRING,
        INCREMENTING,
        Importance.HIGH,
        "SIMPLE_INCREMENTING: a count of records. CHAINING: what the last record holds. "
        "CURSOR_PAGINATION: what an answer says of the next page.",
        validator=OneOfWords((INCREMENTING, CHAINING, CURSOR)),
    ),
    ConfigEntry(
        "http.initial.offset",
        ConfigType.STRING,
        "",
        Importance.MEDIUM,
        "What the first request asks with. Empty: 0 where records are counted, otherwise nothing.",
    ),
    ConfigEntry(
        "http.response.data.json.pointer",
        ConfigType.STRING,
        "",
        Importance.HIGH,
        "Where the records are: a list, or one record. Empty: the whole answer.",
        validator=_POINTER,
    ),
    ConfigEntry(
        "http.offset.json.pointer",
        ConfigType.STRING,
        "",
        Importance.HIGH,
        "CHAINING: where the offset is in a record.",
        validator=_POINTER,
    ),
    ConfigEntry(
        "http.next.page.json.pointer",
        ConfigType.STRING,
        "",
        Importance.HIGH,
        "CURSOR_PAGINATION: where the next page's cursor is in an answer. None there: the last.",
        validator=_POINTER,
    ),
    ConfigEntry(
        "http.record.key.json.pointer",
        ConfigType.STRING,
        "",
        Importance.MEDIUM,
        "Where the key is in a record. Empty: no key.",
        validator=_POINTER,
    ),
    ConfigEntry(
        "request.interval.ms",
        ConfigType.INT,
        15_000,
        Importance.HIGH,
        "The pause before the next request where the last one brought nothing new.",
        validator=AtLeast(1),
    ),
    ConfigEntry(
        "http.response.max.bytes",
        ConfigType.INT,
        16 << 20,
        Importance.LOW,
        "The longest answer that is taken.",
        validator=AtLeast(1),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePosition:
    """What to ask with next, and how many records of the answer are known."""

    offset: str
    skip: int = 0

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> "PagePosition":
        """As it was committed."""
        return cls(offset=str(kept[OFFSET]), skip=int(kept.get(SKIP, 0)))

    def document(self) -> dict[str, Any]:
        """As it is committed."""
        return {OFFSET: self.offset, SKIP: self.skip}


@dataclass(slots=True, kw_only=True)
class _Entity:
    name: str
    topic: str
    partition: dict[str, Any]
    position: PagePosition
    due_s: float = 0.0  # When it is asked next, by the monotonic clock.
    failures: int = 0


class HttpSourceTask(SourceTask):
    """Asks its entities in turn."""

    def __init__(self) -> None:
        self._caller: HttpCaller | None = None
        self._stopping = threading.Event()
        self._entities: list[_Entity] = []

    def start(self, config: Config) -> None:
        self._parsed = _CONFIG.parse(config)
        self._mode = self._parsed["http.offset.mode"]
        self._interval_s = self._parsed["request.interval.ms"] / 1000
        size = self._parsed["http.response.max.bytes"]
        self._caller = HttpCaller(self._parsed, body_bytes_max=size)
        self._entities = [self._entity(name) for name in self._parsed["entity.names"] or [""]]

    def poll(self) -> list[SourceRecord] | None:
        now_s = time.monotonic()
        due = [one for one in self._entities if one.due_s <= now_s]
        if not due:
            next_s = min(one.due_s for one in self._entities) - now_s
            self._stopping.wait(min(_WAIT_S, next_s))
            return None
        entity = min(due, key=lambda one: one.due_s)
        before = entity.position
        records = self._asked(entity)
        is_on = entity.position != before
        entity.due_s = time.monotonic() + (0.0 if is_on else self._interval_s)
        return records

    def stop(self) -> None:
        self._stopping.set()
        if self._caller is not None:
            self._caller.close()

    def _entity(self, name: str) -> _Entity:
        partition = {URL: self._parsed["url"], ENTITY: name}
        kept = self.context.offset_reader.offset(partition)
        first = "0" if self._mode == INCREMENTING else ""
        return _Entity(
            name=name,
            topic=self._parsed["topic.name.pattern"].replace("${entityName}", name),
            partition=partition,
            position=PagePosition(offset=self._parsed["http.initial.offset"] or first)
            if kept is None
            else PagePosition.of(kept),
        )

    def _asked(self, entity: _Entity) -> list[SourceRecord]:
        document, shown = self._answer(entity)
        data = found_at(document, self._parsed["http.response.data.json.pointer"])
        if data is MISSING:
            pointer = self._parsed["http.response.data.json.pointer"]
            raise ConnectError(f"Nothing is at {pointer} of the answer to {shown}")
        items = data if isinstance(data, list) else [] if data is None else [data]
        records = []
        for at, item in enumerate(items[entity.position.skip :], entity.position.skip):
            position = self._after(entity.position, at, item)
            records.append(self._record(entity, item, position))
        return self._moved(entity, document, records)

    def _moved(
        self, entity: _Entity, document: Any, records: list[SourceRecord]
    ) -> list[SourceRecord]:
        """The records; the entity goes on behind them, or to the next page."""
        if records:
            assert records[-1].source_offset is not None
            entity.position = PagePosition.of(records[-1].source_offset)
        if self._mode != CURSOR:
            return records
        cursor = found_at(document, self._parsed["http.next.page.json.pointer"])
        has_next = cursor is not MISSING and cursor not in (None, "")
        if has_next and str(cursor) != entity.position.offset:
            entity.position = PagePosition(offset=str(cursor))
        return records

    def _after(self, position: PagePosition, at: int, item: Any) -> PagePosition:
        """Where to go on behind one record."""
        if self._mode == INCREMENTING:
            return PagePosition(offset=str(int(position.offset) + at + 1))
        if self._mode == CURSOR:
            return PagePosition(offset=position.offset, skip=at + 1)
        pointer = self._parsed["http.offset.json.pointer"]
        found = found_at(item, pointer)
        if found is MISSING or found is None:
            raise ConnectError(f"A record has no offset at {pointer}: {json.dumps(item)[:300]}")
        return PagePosition(offset=str(found))

    def _answer(self, entity: _Entity) -> tuple[Any, str]:
        assert self._caller is not None
        url, body = self._filled("url", entity), self._filled("http.request.body", entity)
        method = self._parsed["http.request.method"].upper()
        content = body.encode() if method == "POST" else None
        try:
            answer = self._caller.call(method, url, content, "application/json")
        except ServerAway as error:
            raise self._later(entity, str(error)) from error
        self._judge(entity, answer, url)
        try:
            return json.loads(answer.body), url
        except (ValueError, RecursionError) as error:
            raise ConnectError(f"{url} answers with what is no JSON: {answer.shown}") from error

    def _judge(self, entity: _Entity, answer: HttpAnswer, url: str) -> None:
        assert self._caller is not None
        if answer.is_success:
            entity.failures = 0
        elif answer.status in self._caller.retried:
            raise self._later(entity, f"{url} answers {answer.shown}")
        else:
            raise ConnectError(f"{url} answers {answer.shown}")

    def _later(self, entity: _Entity, reason: str) -> ConnectError:
        assert self._caller is not None
        entity.failures += 1
        if entity.failures > self._caller.retries_max:
            return ConnectError(f"Given up after {self._caller.retries_max} retries: {reason}")
        entity.due_s = time.monotonic() + self._caller.backoff_ms / 1000
        return RetriableConnectError(reason)

    def _filled(self, name: str, entity: _Entity) -> str:
        text: str = self._parsed[name]
        is_url = name == "url"
        for word, value in (("${offset}", entity.position.offset), ("${entityName}", entity.name)):
            text = text.replace(word, quote(value, safe="") if is_url else value)
        return text

    def _record(self, entity: _Entity, item: Any, position: PagePosition) -> SourceRecord:
        pointer = self._parsed["http.record.key.json.pointer"]
        found = found_at(item, pointer) if pointer else MISSING
        has_key = found is not MISSING and found is not None
        return SourceRecord(
            topic=entity.topic,
            key_schema=STRING_SCHEMA if has_key else None,
            key=(found if isinstance(found, str) else json.dumps(found)) if has_key else None,
            value=item,
            source_partition=entity.partition,
            source_offset=position.document(),
        )


class HttpSourceConnector(DeclaredSource):
    """Entities are dealt out to the tasks."""

    CONFIG = _CONFIG
    TASK = HttpSourceTask

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        checked = check_calling(_CONFIG.validate(config), config)
        if checked.errors():
            return checked
        for name, sentence in _contradictions(_CONFIG.parse(config)):
            checked = checked.with_error(name, sentence)
        return checked

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        hands = dealt(self.parsed["entity.names"], max_tasks)
        return [{**self.config, "entity.names": ",".join(names)} for names in hands]

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        for partition, offset in offsets.items():
            if offset is not None and not (
                {ENTITY, URL} <= dict(partition).keys() and isinstance(offset.get(OFFSET), str)
            ):
                raise ConnectError(
                    f"A partition has '{URL}' and '{ENTITY}', an offset '{OFFSET}' as text"
                )
        return True


def _contradictions(parsed: Mapping[str, Any]) -> list[tuple[str, str]]:
    mode, found = parsed["http.offset.mode"], []
    needed = {CHAINING: "http.offset.json.pointer", CURSOR: "http.next.page.json.pointer"}
    if mode in needed and not parsed[needed[mode]]:
        found.append((needed[mode], f"http.offset.mode={mode} needs it."))
    if "${offset}" not in parsed["url"] + parsed["http.request.body"]:
        found.append(("url", "It needs ${offset}, or the same is asked for ever."))
    if mode == INCREMENTING and not (parsed["http.initial.offset"] or "0").isdigit():
        found.append(("http.initial.offset", f"http.offset.mode={mode} counts from a number."))
    has_word = any("${entityName}" in parsed[name] for name in ("url", "http.request.body"))
    if parsed["entity.names"] and not has_word:
        found.append(("entity.names", "Neither url nor http.request.body has ${entityName}."))
    return found
