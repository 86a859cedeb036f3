"""Which settings leave a task on columns, and what is said about those that do not."""

import pytest

from penstock.connect.columnar.lane import refusal, takes_columns
from penstock.connect.connectors.file.sink import FileStreamSinkTask
from penstock.connect.connectors.file.source import FileStreamSourceTask
from penstock.connect.connectors.s3.sink import S3SinkTask
from penstock.connect.connectors.syslog.source import SyslogSourceTask
from penstock.errors import ConfigError

_FILE = {"file": "/in", "topic": "t"}
_CLIENT = {"bootstrap.servers": "b:9092"}


def why(
    config: dict[str, str], client: dict[str, str] | None = None, kind: type = FileStreamSourceTask
) -> str | None:
    return refusal(kind, config, {**_CLIENT, **(client or {})}, exactly_once=True)


def test_a_plain_source_and_a_plain_sink_take_columns() -> None:
    assert why(_FILE) is None
    assert why({"file": "/out"}, kind=FileStreamSinkTask) is None
    assert takes_columns(FileStreamSourceTask, _FILE, _CLIENT, exactly_once=False)


@pytest.mark.parametrize(
    ("more", "client", "words"),
    [
        ({"transforms": "a"}, {}, "transforms"),
        ({"errors.tolerance": "all"}, {}, "errors.tolerance"),
        ({"errors.retry.timeout": "1000"}, {}, "errors.retry.timeout"),
        ({"transaction.boundary": "connector"}, {}, "transaction.boundary"),
        ({"file": ""}, {}, "standard input"),
        ({}, {"interceptor.classes": "x"}, "interceptor.classes"),
        ({}, {"partitioner.class": "mine.Own"}, "partitioner.class"),
        ({}, {"acks": "1"}, "acks"),
    ],
)
def test_what_needs_single_records_is_named(
    more: dict[str, str], client: dict[str, str], words: str
) -> None:
    told = why({**_FILE, **more}, client)
    assert told is not None and words in told


def test_a_connector_without_columns_and_partitioners_by_fields_are_named() -> None:
    assert "SyslogSourceTask" in str(why({}, kind=SyslogSourceTask))
    sink = {"s3.bucket.name": "bucket", "format.class": "ParquetFormat", "flush.size": "10"}
    assert why(sink, kind=S3SinkTask) is None
    assert "partitioner" in str(
        why({**sink, "partitioner.class": "DailyPartitioner", "timezone": "UTC"}, kind=S3SinkTask)
    )
    assert "AvroFormat" in str(why({**sink, "format.class": "AvroFormat"}, kind=S3SinkTask))


def test_the_setting_decides_where_it_says_something() -> None:
    config = {**_FILE, "penstock.lane": "ordinary"}
    assert not takes_columns(FileStreamSourceTask, config, _CLIENT, exactly_once=True)
    config = {**_FILE, "penstock.lane": "Columnar", "transforms": "a"}
    with pytest.raises(ConfigError, match="transforms take single records"):
        takes_columns(FileStreamSourceTask, config, _CLIENT, exactly_once=True)
    with pytest.raises(ConfigError, match="must be one of auto, columnar, ordinary"):
        takes_columns(
            FileStreamSourceTask, {**_FILE, "penstock.lane": "fast"}, _CLIENT, exactly_once=True
        )
