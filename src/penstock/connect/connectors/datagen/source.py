"""DatagenConnector: made-up records, exactly once where the worker is set so.

A task's record n is a function of the seed, the task and n, and n is the offset. Without a seed
in the settings one is drawn when the task first starts, and kept with the offset: after a crash the
same records go on.
"""

import json
import random
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.connect.connectors.datagen.generator import RecordMaker
from penstock.connect.connectors.datagen.quickstarts import QUICKSTARTS
from penstock.connect.errors.kinds import ConnectError
from penstock.connect.plugins.config_def import (
    NO_DEFAULT,
    CheckedConfig,
    ConfigDef,
    ConfigEntry,
    ConfigType,
    Importance,
)
from penstock.connect.plugins.contract import Config, ExactlyOnceSupport, SourceTask
from penstock.connect.plugins.declared import DeclaredSource
from penstock.connect.plugins.validators import AtLeast, NonEmptyText, OneOfWords
from penstock.connect.records import SourceRecord
from penstock.errors import ConfigError, PenstockError

TASK_ID, ITERATION, SEED = "task.id", "current.iteration", "random.seed"
_TASK = "penstock.datagen.task"  # Of a task's own configuration.
_SCHEMAS = ("quickstart", "schema.string", "schema.filename")
_BATCH_MAX = 500
_WAIT_S = 0.2
_CONFIG = ConfigDef(
    ConfigEntry(
        "kafka.topic",
        ConfigType.STRING,
        NO_DEFAULT,
        Importance.HIGH,
        "The topic that records go to.",
        validator=NonEmptyText(),
    ),
    ConfigEntry(
        "quickstart",
        ConfigType.STRING,
        "",
        Importance.HIGH,
        "A schema that is ready.",
        validator=OneOfWords(("", *sorted(QUICKSTARTS)), any_case=True),
    ),
    ConfigEntry(
        "schema.string",
        ConfigType.STRING,
        "",
        Importance.HIGH,
        "An Avro record, with arg.properties that say how fields are made.",
    ),
    ConfigEntry(
        "schema.filename",
        ConfigType.STRING,
        "",
        Importance.HIGH,
        "A file with such a schema, where the worker runs.",
    ),
    ConfigEntry(
        "schema.keyfield",
        ConfigType.STRING,
        "",
        Importance.HIGH,
        "The field that is also the key. Empty: that of the quickstart, or none.",
    ),
    ConfigEntry(
        "max.interval",
        ConfigType.LONG,
        500,
        Importance.HIGH,
        "The longest pause between two records, in milliseconds; pauses are random. 0: none.",
        validator=AtLeast(0),
    ),
    ConfigEntry(
        "iterations",
        ConfigType.INT,
        -1,
        Importance.HIGH,
        "How many records each task makes; then it is idle. Below 1: it never ends.",
    ),
    ConfigEntry(
        "random.seed",
        ConfigType.LONG,
        None,
        Importance.LOW,
        "The same seed makes the same records. Without it, one is drawn and kept.",
    ),
)


class _NoSuchField(ConfigError):
    """The key's field is not in the schema."""


def _check(partition: Mapping[str, Any], offset: Mapping[str, Any]) -> None:
    if not isinstance(partition.get(TASK_ID), int):
        raise ConnectError(f"Partition objects should contain the key '{TASK_ID}' with a number")
    if not isinstance(offset.get(ITERATION), int) or offset[ITERATION] < 0:
        raise ConnectError(f"Offset objects should contain '{ITERATION}' with a number of records")


def _read(name: str) -> str:
    try:
        return Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file {name} cannot be read: {error}") from error


def _chosen(parsed: Mapping[str, Any]) -> tuple[RecordMaker, str]:
    """What makes records, and the field of the key; empty: no key."""
    key = ""
    if parsed["quickstart"]:
        avro, key = QUICKSTARTS[parsed["quickstart"].lower()]
    else:
        text = parsed["schema.string"] or _read(parsed["schema.filename"])
        try:
            avro = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"the schema is no JSON: {error}") from error
    maker = RecordMaker(avro)
    key = parsed["schema.keyfield"] or key
    if key and maker.schema.field(key) is None:
        raise _NoSuchField(f"the schema has no field {key}")
    return maker, key


class DatagenTask(SourceTask):
    """Makes one record after the other, from the number that was committed."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._number = 0
        self._pauses = random.Random()

    def start(self, config: Config) -> None:
        parsed = _CONFIG.parse(config)
        self._maker, self._key = _chosen(parsed)
        self._topic, self._pause_ms = parsed["kafka.topic"], parsed["max.interval"]
        self._iterations = parsed["iterations"]
        self._partition = {TASK_ID: int(config.get(_TASK, "0"))}
        offset = self.context.offset_reader.offset(self._partition) or {}
        self._number = int(offset.get(ITERATION, 0))
        kept = offset.get(SEED, random.SystemRandom().getrandbits(48))
        self._seed = kept if parsed[SEED] is None else parsed[SEED]

    def poll(self) -> list[SourceRecord] | None:
        left = _BATCH_MAX if self._iterations < 1 else self._iterations - self._number
        if left <= 0:
            self._stopping.wait(_WAIT_S)
            return None
        if not self._pause_ms:
            return [self._record() for _ in range(min(left, _BATCH_MAX))]
        self._stopping.wait(self._pauses.uniform(0, self._pause_ms) / 1000)
        return None if self._stopping.is_set() else [self._record()]

    def stop(self) -> None:
        self._stopping.set()

    def _record(self) -> SourceRecord:
        value = self._maker.value(self._number, f"{self._seed}/{self._partition[TASK_ID]}")
        self._number += 1
        field = self._maker.schema.field(self._key) if self._key else None
        return SourceRecord(
            topic=self._topic,
            key_schema=None if field is None else field.schema,
            key=None if field is None else value[self._key],
            value_schema=self._maker.schema,
            value=value,
            source_partition=self._partition,
            source_offset={ITERATION: self._number, SEED: self._seed},
        )


class DatagenConnector(DeclaredSource):
    """As many tasks as allowed, each with records of its own."""

    CONFIG = _CONFIG
    TASK = DatagenTask

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        checked = _CONFIG.validate(config)
        given = [name for name in _SCHEMAS if config.get(name)]
        if len(given) != 1:
            return checked.with_error(
                _SCHEMAS[0], f"Exactly one of {', '.join(_SCHEMAS)} must be set."
            )
        if checked.errors():
            return checked
        try:
            _chosen(_CONFIG.parse(config))
        except PenstockError as error:
            name = "schema.keyfield" if isinstance(error, _NoSuchField) else given[0]
            return checked.with_error(name, str(error))
        return checked

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        shared = dict(self.config)
        if self.parsed["schema.filename"]:  # Tasks may run where the file is not.
            shared["schema.string"] = _read(self.parsed["schema.filename"])
            shared["schema.filename"] = ""
        return [{**shared, _TASK: str(n)} for n in range(max_tasks)]

    def exactly_once_support(self, config: Config) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED

    def alter_offsets(
        self, config: Config, offsets: Mapping[frozenset[tuple[str, Any]], Mapping[str, Any] | None]
    ) -> bool:
        for partition, offset in offsets.items():
            if offset is not None:
                _check(dict(partition), offset)
        return True
