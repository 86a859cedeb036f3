"""The settings of S3's sink, all errors at once."""

import pytest

from penstock.connect.connectors import aws
from penstock.connect.connectors.s3 import settings
from penstock.connect.connectors.s3.sink import S3SinkConnector

GOOD = {
    "s3.bucket.name": "lake",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "flush.size": "10",
}


def test_a_configuration_of_confluents_is_taken() -> None:
    assert S3SinkConnector.validate(GOOD).errors() == {}


def test_all_errors_are_told_at_once() -> None:
    config = {
        **GOOD,
        "s3.bucket.name": "!",
        "store.url": "localhost",
        "s3.part.size": "10",
        "s3.compression.type": "gzip",
        "format.class": "ParquetFormat",
        "aws.access.key.id": "me",
        "s3.acl.canned": "all",
        "s3.ssea.name": "rot13",
        "partitioner.class": "x.FieldPartitioner",
    }
    assert set(S3SinkConnector.validate(config).errors()) == {
        "s3.bucket.name",
        "store.url",
        "s3.part.size",
        "s3.compression.type",
        "aws.access.key.id",
        "s3.acl.canned",
        "s3.ssea.name",
        "partition.field.name",
    }


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "has_boto", lambda: False)
    found = S3SinkConnector.validate(GOOD).errors()
    assert found == {"s3.bucket.name": (aws.MISSING,)}
    assert "pip install 'penstock[connectors]'" in aws.MISSING
