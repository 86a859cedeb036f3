"""S3SourceConnector: objects of a bucket as records, exactly once where the worker is set so."""

from penstock.connect.connectors.objects.connectors import ObjectSourceConnector
from penstock.connect.connectors.objects.source import ObjectSourceTask
from penstock.connect.connectors.s3.settings import S3


class S3SourceTask(ObjectSourceTask):
    """Reads its share of the bucket."""

    kind = S3


class S3SourceConnector(ObjectSourceConnector):
    """Reads S3."""

    task = S3SourceTask
