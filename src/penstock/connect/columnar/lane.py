"""Which lane a task takes: columns where all that lies on the way can be done on columns.

`penstock.lane` in a connector's configuration is `auto`, `columnar` or `ordinary`. With `auto` the
settings decide, with `columnar` a task that would need single records does not start.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from penstock.connect.columnar.contract import ColumnarSinkTask, ColumnarSourceTask
from penstock.connect.plugins.contract import SourceTask
from penstock.connect.settings import LANE
from penstock.errors import ConfigError, PenstockError
from penstock.spark.sink.settings import SinkSettings, sink_settings

_TRANSACTION_MS: Final = "60000"  # Kafka's default for a producer, as in the ordinary lane.
# What only librdkafka's clients or plug-ins can do.
_CONSUMER_PLUGINS: Final = ("interceptor.classes", "key.deserializer", "value.deserializer")


class TaskLane(StrEnum):
    """The words of the setting."""

    AUTO = "auto"
    COLUMNAR = "columnar"
    ORDINARY = "ordinary"


def wanted_lane(config: Mapping[str, str]) -> TaskLane:
    """The word of a configuration; ConfigError for one that is none."""
    word = config.get(LANE, TaskLane.AUTO).strip().lower()
    try:
        return TaskLane(word)
    except ValueError:
        raise ConfigError(
            f"Invalid value {config[LANE]} for configuration {LANE}: String must be one of"
            f" {', '.join(TaskLane)}"
        ) from None


def takes_columns(
    kind: type, config: Mapping[str, str], client: Mapping[str, str], *, exactly_once: bool
) -> bool:
    """Whether tasks of this kind run on columns; ConfigError where they cannot and must.

    `client` has the settings of the producer of a source, or of the consumer of a sink.
    """
    wanted = wanted_lane(config)
    if wanted is TaskLane.ORDINARY:
        return False
    reason = refusal(kind, config, client, exactly_once=exactly_once)
    if reason is not None and wanted is TaskLane.COLUMNAR:
        raise ConfigError(f"{LANE}=columnar is not possible: {reason}")
    return reason is None


def refusal(
    kind: type, config: Mapping[str, str], client: Mapping[str, str], *, exactly_once: bool
) -> str | None:
    """Why single records are needed; None: they are not."""
    if not issubclass(kind, ColumnarSourceTask | ColumnarSinkTask):
        return f"{kind.__name__} has records alone."
    if config.get("transforms", "").strip():
        return "transforms take single records."
    if config.get("errors.tolerance", "none").strip().lower() != "none":
        return "errors.tolerance puts single records aside."
    if config.get("errors.retry.timeout", "0").strip() != "0":
        return "errors.retry.timeout is for single records."
    if issubclass(kind, ColumnarSourceTask):
        found = _of_source(kind, config, client, exactly_once=exactly_once)
    else:
        found = _of_sink(client)
    return found or kind.refuses_columns(config)


def _of_source(
    kind: type[SourceTask],
    config: Mapping[str, str],
    client: Mapping[str, str],
    *,
    exactly_once: bool,
) -> str | None:
    if exactly_once and config.get("transaction.boundary", "poll").lower() == "connector":
        return "transaction.boundary=connector ends transactions at single records."
    if kind.commit_record is not SourceTask.commit_record:
        return f"{kind.__name__} is told of each record."
    try:
        writer_settings(client, exactly_once=exactly_once)
    except PenstockError as error:
        return f"of the producer's settings, {error}."
    return None


def _of_sink(client: Mapping[str, str]) -> str | None:
    named = [name for name in _CONSUMER_PLUGINS if client.get(name)]
    return f"{named[0]} takes single records." if named else None


def writer_settings(client: Mapping[str, str], *, exactly_once: bool) -> SinkSettings:
    """How columns are sent; OptionError names a setting that cannot be honoured."""
    chosen = {"transaction.timeout.ms": _TRANSACTION_MS, "acks": "all", **client}
    # A batch is sent as soon as it is full or the poll is over: there is nothing to wait for.
    chosen.pop("linger.ms", None)
    return sink_settings(chosen, exactly_once=exactly_once)
