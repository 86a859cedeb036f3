"""ElasticsearchSinkConnector: records as documents of Elasticsearch or OpenSearch.

Exactly once in effect with INSERT: ids and versions are made of keys and offsets, so what comes
twice changes nothing. UPSERT is at least once.
"""

import logging
from collections.abc import Iterator, Mapping

from penstock.connect.connectors.elasticsearch.bulk_client import BulkClient
from penstock.connect.connectors.elasticsearch.documents import (
    BulkLine,
    DocumentRules,
    LineOutcome,
    bulk_line,
    mapping_of,
    outcome_of,
)
from penstock.connect.connectors.elasticsearch.settings import CONFIG, checked_together
from penstock.connect.errors.kinds import ConnectError, DataError, RetriableConnectError
from penstock.connect.plugins.config_def import CheckedConfig, ConfigDef
from penstock.connect.plugins.contract import Config, SinkConnector, SinkTask
from penstock.connect.records import SinkRecord
from penstock.records.topic_partition import TopicPartition

log = logging.getLogger("penstock.connect")
_BACKOFF_MS_MAX = 60_000


class ElasticsearchSinkConnector(SinkConnector):
    """Tasks share the partitions of the topics by their consumer group."""

    def __init__(self) -> None:
        self._config: Config = {}

    @classmethod
    def config_def(cls) -> ConfigDef:
        return CONFIG

    @classmethod
    def task_class(cls) -> type:
        return ElasticsearchSinkTask

    @classmethod
    def validate(cls, config: Config) -> CheckedConfig:
        return checked_together(CONFIG.validate(config))

    def start(self, config: Config) -> None:
        CONFIG.parse(config)
        self._config = config

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [dict(self._config) for _ in range(max_tasks)]

    def alter_offsets(self, config: Config, offsets: Mapping[TopicPartition, int | None]) -> bool:
        return True  # The cluster keeps no offsets: the group's are all there are.


class ElasticsearchSinkTask(SinkTask):
    """Everything that is put is in the cluster when `put` returns."""

    def start(self, config: Config) -> None:
        parsed = CONFIG.parse(config)
        self._client = BulkClient(parsed)
        self._ignores_key: bool = parsed["key.ignore"]
        self._keyless = set(parsed["topic.key.ignore"] or ())
        self._ignores_schema: bool = parsed["schema.ignore"]
        self._schemaless = set(parsed["topic.schema.ignore"] or ())
        self._is_upsert = parsed["write.method"].upper() == "UPSERT"
        self._on_null = parsed["behavior.on.null.values"].upper()
        self._on_malformed = parsed["behavior.on.malformed.documents"].upper()
        self._drops: bool = parsed["drop.invalid.message"]
        self._header: str = parsed["external.version.header"]
        self._lines_max: int = parsed["batch.size"]
        self._bytes_max: int = parsed["bulk.size.bytes"]
        self._retries_max: int = parsed["max.retries"]
        self._backoff_ms: int = parsed["retry.backoff.ms"]
        self._failures = 0  # In a row.
        self._known: set[str] = set()  # Indexes that are there.

    def put(self, records: list[SinkRecord]) -> None:
        try:
            for lines in self._batches(records):
                self._send(lines)
        except RetriableConnectError as error:
            self._count_failure(error)
            raise
        self._failures = 0

    def stop(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()

    def _count_failure(self, error: RetriableConnectError) -> None:
        """After too many in a row the task fails, and its status says why."""
        self._failures += 1
        if self._failures > self._retries_max:
            raise ConnectError(f"Failed {self._failures} times in a row: {error}") from error
        pause_ms = self._backoff_ms * 2 ** (self._failures - 1)
        self.context.set_timeout_ms(min(_BACKOFF_MS_MAX, pause_ms))

    def _batches(self, records: list[SinkRecord]) -> Iterator[list[BulkLine]]:
        lines: list[BulkLine] = []
        size = 0
        for record in records:
            line = self._line(record)
            if line is None:
                continue
            if lines and (
                len(lines) >= self._lines_max or size + len(line.content) > self._bytes_max
            ):
                yield lines
                lines, size = [], 0
            lines.append(line)
            size += len(line.content)
        if lines:
            yield lines

    def _line(self, record: SinkRecord) -> BulkLine | None:
        try:
            line = bulk_line(record, self._rules(record))
            if line is not None and record.value is not None:
                self._ensure_index(line.index, record)
        except DataError as error:
            self._put_aside(record, error, drops=self._drops)
            return None
        return line

    def _rules(self, record: SinkRecord) -> DocumentRules:
        return DocumentRules(
            ignores_key=self._ignores_key or record.topic in self._keyless,
            is_upsert=self._is_upsert,
            on_null=self._on_null,
            version_header=self._header,
        )

    def _ensure_index(self, index: str, record: SinkRecord) -> None:
        if index in self._known:
            return
        if not self._ignores_schema and record.topic not in self._schemaless:
            if record.value_schema is None:
                raise DataError(
                    "the record has no schema to make a mapping of (schema.ignore=true leaves it "
                    "to the server)"
                )
            self._client.ensure_index(index, mapping_of(record.value_schema))
        self._known.add(index)

    def _send(self, lines: list[BulkLine]) -> None:
        """One bulk call; RetriableConnectError if some lines are to be sent again."""
        items = self._client.bulk(b"".join(one.content for one in lines))
        if len(items) != len(lines):
            raise RetriableConnectError(f"{len(items)} answers to {len(lines)} lines")
        again = ""
        for line, item in zip(lines, items, strict=True):
            outcome, reason = outcome_of(item)
            if outcome is LineOutcome.AGAIN:
                again = again or reason
            elif outcome is LineOutcome.REFUSED:
                raise ConnectError(f"{_place(line.record)} was refused: {reason}")
            elif outcome is LineOutcome.MALFORMED:
                drops = self._on_malformed != "FAIL"
                self._put_aside(line.record, DataError(reason), drops=drops)
        if again:
            raise RetriableConnectError(f"the cluster is too busy: {again}")

    def _put_aside(self, record: SinkRecord, error: DataError, *, drops: bool) -> None:
        reporter = self.context.errant_record_reporter
        if reporter is not None:
            reporter.report(record, error)
        elif not drops:
            raise DataError(f"{_place(record)}: {error}") from error
        elif self._on_malformed != "IGNORE":
            log.warning("%s is left out: %s", _place(record), error)


def _place(record: SinkRecord) -> str:
    topic, partition = record.original_topic or record.topic, record.original_partition
    return f"{topic}-{partition if partition is not None else record.partition} at {record.offset}"
